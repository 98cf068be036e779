"""The command line. It uses the daemon's HTTP API like any other client. The door does not import it."""
