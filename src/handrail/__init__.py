"""Handrail: a person sees, approves, cancels or completes every tool call of a coding agent.

This module holds the version and imports nothing, which keeps the start of the door and the keeper fast.
"""

__version__ = "0.1.0"
