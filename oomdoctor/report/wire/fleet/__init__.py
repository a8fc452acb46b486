"""What is told of many jobs, as JSON."""
