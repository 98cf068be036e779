"""Shells that say where their commands begin and end, and what can be known by it."""
