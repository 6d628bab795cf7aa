"""The report: one page, and pictures, that tell what a run tried, what it found and how to check it."""
