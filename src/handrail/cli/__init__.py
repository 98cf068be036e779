"""The commands for people. They speak to the daemon over its API, like any other client. Doors do not import this."""
