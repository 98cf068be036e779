"""Waiting for something to happen in a terminal."""
