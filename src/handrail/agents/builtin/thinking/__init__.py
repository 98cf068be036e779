"""Thinking: prompt, model, calls, model, in one tree of scopes, and the conversation that comes of it.

It does not know any provider, any tool, or how it is heard.
"""
