"""What a hosted agent asks of its host: permission, terminals, files."""
