"""Scheduler records of jobs, read once and looked up by job ID."""
