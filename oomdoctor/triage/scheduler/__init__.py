"""What schedulers say of jobs: their records, read once and found by the id of a job."""
