"""Terminals that stay: opened, read, typed into, waited for and closed by agents."""
