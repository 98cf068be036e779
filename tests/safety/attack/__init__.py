"""What a hostile command tries when it runs under Handrail: to get a person's power, from every posture it can take.

A program of its own: `python -m attack ORDER`. It knows everything that a process of the same user can know, and is
given a real call bearer. Each try tells what it got; code 0 means that it got what it wanted.
"""
