"""Requests that a hosted agent makes of its host: permission, terminals, files."""
