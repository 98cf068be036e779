"""Reading and changing files: what is proposed, what a person makes of it, and what is written."""
