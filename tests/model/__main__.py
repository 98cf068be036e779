"""The scripted model as a process of its own: prints its address and serves until its input ends.

python -m tests.model [PORT]
"""

import sys

from tests.model.server import model_server

with model_server(int(sys.argv[1]) if sys.argv[1:] else 0) as server:
    print(server.url, flush=True)
    sys.stdin.read()
