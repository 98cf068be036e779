"""List files, and search their names and contents."""
