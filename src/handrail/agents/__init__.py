"""Hosting of ACP agents: the registry, the running programs, and the conversations that people have with
them."""
