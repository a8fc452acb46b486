"""Pickles of plain values, read without the interpreter's unpickler: nothing in them can be named, called or built."""
