"""One running program that speaks the Agent Client Protocol: its pipes, its line, its sessions."""
