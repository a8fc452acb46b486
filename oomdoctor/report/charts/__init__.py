"""Charts as SVG, written by Python: no script, no style attribute, looks by the classes of one stylesheet."""
