"""The store: the event journal, the tables derived from it, and integrity checks for both.

Of the rest of Handrail it imports only `errors`.
"""
