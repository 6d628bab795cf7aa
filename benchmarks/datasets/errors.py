"""Errors: why a data set cannot be made, and what to do about it."""


class DataError(Exception):
    """Something a user can act on; not an OutpaceError, for the sets can be made where outpace is not installed."""
