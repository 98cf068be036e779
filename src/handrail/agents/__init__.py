"""Minds: programs that speak the Agent Client Protocol, hosted here, and the conversations people have with them."""
