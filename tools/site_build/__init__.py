"""Parts of tools/build_site.py."""
