"""Conversations in the clients' own files, read-only: one module per client's format, and the search for the files."""
