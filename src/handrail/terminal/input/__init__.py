"""Keys and what was typed into a terminal."""
