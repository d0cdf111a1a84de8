"""What works with what: the axes, what holds in each cell, and the page that lists them."""
