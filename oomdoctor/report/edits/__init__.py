"""What is wrong in configs, and what a fix changed, in words."""
