"""Watched processes: the keeper client, terminals, their output and input, and waits on them."""
