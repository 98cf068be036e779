"""The models our agent thinks with: which there are, by whose key, and how one is asked."""
