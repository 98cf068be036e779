"""What our agent is to its host: a program that speaks the Agent Client Protocol, and keeps its sessions on disk."""
