"""Many jobs at once: from folders of logs to one row a job, groups of the same failure, and what to do about them."""
