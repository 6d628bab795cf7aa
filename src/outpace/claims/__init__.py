"""Claims: what may be said of a winner, as one file that others can check."""
