"""Answers of `oomdoctor estimate` that few ask for."""
