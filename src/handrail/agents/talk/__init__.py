"""Conversations: whose turn it is, how an agent is asked, and what is taken down of what it says."""
