"""The documentation site: pages that are written, pages that are made from commands, schemas and rules, and the generator."""
