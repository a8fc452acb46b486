"""Runs that are watched or recorded: snapshots, series, evidence."""
