"""execute_command: claims of a shell line, and running it in a new or an existing terminal."""
