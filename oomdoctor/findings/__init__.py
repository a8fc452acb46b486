"""Case + rules -> findings, with conditions that are true, false or unknown."""
