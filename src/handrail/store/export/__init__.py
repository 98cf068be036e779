"""Threads as files: Markdown to read, JSON to import again."""
