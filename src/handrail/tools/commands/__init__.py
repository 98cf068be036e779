"""Commands: what a line would touch, and running it in a terminal of its own or in one that is there."""
