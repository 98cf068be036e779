"""Tools for persistent terminals: open, list, read, search, type, wait, close."""
