"""The import of the MCP SDK by the daemon."""

import subprocess
import sys

from tests.support.daemon_home import BOUND

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from handrail.server.mcp.mcp_endpoints import SDK, SDK_MODULES
SDK.import_modules(*SDK_MODULES)
not_needed = {"cryptography", "mcp.client", "mcp.server.mcpserver"}
unused = not_needed & sys.modules.keys()
import mcp.client.session
import mcp.server.mcpserver
from mcp import ClientSession
from mcp.server import MCPServer
print(unused or "nothing", ClientSession is mcp.client.session.ClientSession, MCPServer is mcp.server.mcpserver.MCPServer)
"""


def test_only_what_serves_clients_is_imported_and_the_sdk_is_whole_when_asked() -> None:
    argv = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=BOUND)

    assert (done.stdout, done.stderr) == ("nothing True True\n", "")
