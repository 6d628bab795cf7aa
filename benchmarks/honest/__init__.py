"""Honest optimisations of many kinds, and the loops that time them without the judge."""
