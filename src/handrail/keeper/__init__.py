"""The keeper: the process that starts every other process, owns every PTY and outlives the daemon."""
