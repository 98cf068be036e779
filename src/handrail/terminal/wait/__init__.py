"""Waits on a terminal: conditions, input detection, pattern matching and listening ports."""
