"""Interactive approvals: keyboard input, questions, editing."""
