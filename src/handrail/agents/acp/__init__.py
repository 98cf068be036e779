"""The host's side of the Agent Client Protocol: processes, connections, sessions."""
