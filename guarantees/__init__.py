"""What intervals hold, by simulation: ``python -m guarantees`` writes the page."""
