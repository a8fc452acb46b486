"""The words of reports in English and Chinese."""
