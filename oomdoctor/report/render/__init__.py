"""A Document as text: terminal, Markdown, HTML."""
