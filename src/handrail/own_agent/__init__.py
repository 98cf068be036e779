"""Handrail's own agent: an ACP program that works from an API key alone."""
