"""Terminal output: bytes on disk with absolute offsets; paging, search, plain text and screen rendering."""
