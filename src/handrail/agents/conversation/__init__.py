"""Prompts to agents and the threads that record them."""
