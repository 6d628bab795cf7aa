"""Policies: who proposes the next candidate."""
