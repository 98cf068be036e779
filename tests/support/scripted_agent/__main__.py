"""Entry point of the scripted agent: `python -P PATH/TO/scripted_agent/__main__.py BEHAVIOR`.

The environment in which a host starts it has no path to this repository, so it adds one.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.support.scripted_agent.program import run

run(sys.argv)
