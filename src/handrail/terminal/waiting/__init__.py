"""Waiting: what a terminal waits for, and waiting for a terminal."""
