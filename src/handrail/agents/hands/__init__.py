"""What agents ask their host for, done through the gate: files, terminals, permissions, forms."""
