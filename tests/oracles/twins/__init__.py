"""Twins of the compiled code, slow and plain in NumPy: what tests compare it with."""
