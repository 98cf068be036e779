"""Questions and editing in a terminal."""
