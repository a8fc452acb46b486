"""What an evidence folder states, a line each, in the form that rules/signatures/watched-run.yaml reads."""
