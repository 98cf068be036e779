"""Conversations: what is said in them, as it grows in memory and as it was written down.

The collection of them is threads.py, one room up.
"""
