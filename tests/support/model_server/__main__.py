"""The scripted model server as a process: prints its address and serves until its input ends.

python -m tests.support.model_server [PORT]
"""

import sys

from tests.support.model_server.server import model_server

with model_server(int(sys.argv[1]) if sys.argv[1:] else 0) as server:
    print(server.url, flush=True)
    sys.stdin.read()
