"""Results as JSON and SARIF: forms with a version, apart from the structures inside."""
