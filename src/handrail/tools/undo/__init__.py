"""Taking back what calls did to files."""
