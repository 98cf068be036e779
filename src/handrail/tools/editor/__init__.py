"""The tools that a person's editor serves, while it has the folder open."""
