"""What a hostile command tries when it runs under Handrail: to get a person's power, from every posture it can take.

A program of its own: `python -m attack ORDER`. It knows everything that a process of the same user can know, and is
given a real call bearer. Each try tells what it got; code 0 means that it got what it wanted.
"""

import os
from pathlib import Path

_home = Path(__file__).with_name("home")
if _home.is_file():  # laid beside it where it is let loose: it has to find its target
    os.environ["HANDRAIL_HOME"] = _home.read_text()
