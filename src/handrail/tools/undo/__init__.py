"""Undo file changes made by calls."""
