"""What happened: the journal of all facts, the tables made from it, and the checks of both.

Imports nothing else of Handrail but its errors.
"""
