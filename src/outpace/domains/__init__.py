"""Domains: the kinds of things that can be made faster."""
