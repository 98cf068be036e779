"""The programs of MCP servers."""

import pytest

from handrail.gate.tool import Refusal
from handrail.upstream._transports import find_command


def test_a_program_of_the_project_does_not_take_the_place_of_one_on_the_path() -> None:
    assert find_command(("sh", "-c", "x"), {"PATH": ".:/bin:/usr/bin"}) in (
        ("/bin/sh", "-c", "x"),
        ("/usr/bin/sh", "-c", "x"),
    )
    assert find_command(("bin/server",), {"HOME": "/home/ada"}) == ("/home/ada/bin/server",)
    with pytest.raises(Refusal, match="no program nothing"):
        find_command(("nothing",), {"PATH": "/bin"})
