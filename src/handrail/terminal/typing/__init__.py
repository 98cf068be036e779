"""Typing: keys and their names, and the history of who typed what."""
