"""Importing the model libraries without the modules that a conversation does not use."""

import subprocess
import sys

from tests.support.daemon_home import BOUND

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from handrail.own_agent.acp_server import SLOW_MODULES
from handrail.own_agent.slow_import import import_lazily
for name in SLOW_MODULES:
    import_lazily(name)
from handrail.own_agent.models.providers import load_provider
load_provider("openai")
import pydantic_ai
version = pydantic_ai.__version__  # a part of every request
not_needed = {"openai.types.fine_tuning", "openai.types.beta", "pydantic_ai._agent_graph", "pydantic_ai.workspaces.local"}
unused = not_needed & sys.modules.keys()
from pydantic_ai import Agent, ModelRequest, __version__
import pydantic_ai.messages
print(unused or "nothing", ModelRequest is pydantic_ai.messages.ModelRequest, Agent.__name__, bool(version) and version == __version__)
"""


def test_the_installed_libraries_are_imported_lazily_and_are_whole_when_asked() -> None:
    argv = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=BOUND)

    assert (done.stdout, done.stderr) == ("nothing True Agent True\n", "")
