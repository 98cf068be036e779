"""Threads: conversations in memory, on disk and as records."""
