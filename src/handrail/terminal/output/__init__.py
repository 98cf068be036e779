"""A terminal's output: bytes on disk with offsets, read, searched, and shown as text or as a screen."""
