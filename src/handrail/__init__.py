"""Handrail: every tool call of a coding agent, seen, asked about, cancelled or completed by a person.

This module owns the version alone. It imports nothing, so that the door and the keeper start at once.
"""

__version__ = "0.1.0"
