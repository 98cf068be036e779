"""Processes people can watch: the daemon's end of the keeper, terminals and their output."""
