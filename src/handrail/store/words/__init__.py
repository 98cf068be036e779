"""Every word that was said, asked for or printed, in a file of its own beside the database.

The file is made from the journal and the conversations, and is made again when it is lost or damaged. Its own, so that
filling it and emptying it never hold up a commit.
"""
