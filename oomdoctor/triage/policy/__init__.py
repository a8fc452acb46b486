"""What others act on: whether to start a job again, and which groups are news."""
