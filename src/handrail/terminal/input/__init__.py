"""Terminal input: key names and encodings, and the history of typed lines."""
