"""Coverage of intervals by simulation: ``python -m guarantees`` writes the page."""
