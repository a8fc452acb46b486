"""Triage of many jobs at once: folders of logs are turned into one row per job, groups of identical failures, and what to do about them."""
