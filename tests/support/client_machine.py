"""A user's machine with coding agents for tests of `handrail connect`: a home, and stand-ins for the clients' programs.

The stand-ins only print a version, and `claude mcp add` and `remove` write the documented entry. The real programs are
tested in tests/real_clients.
"""

import json
import sys
from pathlib import Path
from typing import Any

from handrail.clients.client_facts import Client, Machine, Setup
from handrail.clients.connection_plan import connect, disconnect, plan_connect, plan_disconnect
from handrail.clients.connections import Connections
from handrail.clients.known_clients import find_client
from handrail.clients.launcher_path import Launcher
from handrail.clients.mcp_entries import find_mcp_entries
from handrail.clients.server_move import KnownServers, MovePlan, plan_moves

CLAUDE = """\
#!{python} -I
import json, os, sys
from pathlib import Path
if sys.argv[1:] == ["--version"]:
    print("{version} (Claude Code)")
    sys.exit()
file = Path(os.environ.get("CLAUDE_CONFIG_DIR") or os.environ["HOME"], ".claude.json")
data = json.loads(file.read_text()) if file.exists() else {{"firstStartVersion": "{version}"}}
servers = data.setdefault("mcpServers", {{}})
verb, rest = sys.argv[2], sys.argv[3:]
if verb == "remove":
    servers.pop(rest[0])
elif rest[2] in servers:
    sys.exit("MCP server handrail already exists in user config")
else:
    at = rest.index("--")
    env = dict(rest[index + 1].split("=", 1) for index in range(3, at, 2))
    servers[rest[2]] = {{"type": "stdio", "command": rest[at + 1], "args": rest[at + 2 :], "env": env}}
file.write_text(json.dumps(data, indent=2))
"""
PLAIN = "#!/bin/sh\necho {version}\n"


class ClientMachine:
    """A home with installed clients, and one Handrail's records."""

    def __init__(self, folder: Path, *installed: str, launcher: str = "/opt/hand rail/bin/handrail") -> None:
        self.home, self.bin, self.project = folder / "home", folder / "bin", folder / "home" / "project"
        self.data = folder / "handrail"
        for each in (self.bin, self.project, self.data):
            each.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}
        self.machine = Machine(self.home, self.environ, self.project, folder / "root")
        self.connections = Connections(self.data)
        self.launcher = Launcher(launcher)
        for name in installed:
            self.install(name)

    def install(self, name: str, version: str = "") -> None:
        client = find_client(name)
        text = CLAUDE if name == "claude" else PLAIN
        program = self.bin / client.programs[0]
        program.write_text(text.format(python=sys.executable, version=version or client.tried or "1.99.0"))
        program.chmod(0o755)

    def setup(self, client: Client, **options: Any) -> Setup:
        chosen: dict[str, Any] = {"version": client.tried, "program": client.program(self.machine), **options}
        return Setup(machine=self.machine, launcher=chosen.pop("launcher", self.launcher), **chosen)

    def plan_moves(self, name: str, **options: Any) -> MovePlan:
        """The moves of a client's MCP servers, where nothing else is behind Handrail."""
        client = find_client(name)
        setup = self.setup(client, **options)
        moved = [server for each in self.connections.all() for server in each.servers]
        known = KnownServers(sections={}, secrets=(), moved=moved)
        return plan_moves(client, setup, find_mcp_entries(client, setup), known)

    def connect(self, name: str, *, moves: bool = False, **options: Any) -> bool:
        """Connect a client, and with `moves` take its MCP servers out; returns whether anything changed."""
        client = find_client(name)
        chosen = self.plan_moves(name, **options).moves if moves else ()
        plan = plan_connect(client, self.setup(client, **options), self.connections, chosen)
        connect(plan, self.connections, self.environ)
        return plan.is_change

    def disconnect(self, name: str, key: str = "") -> list[str]:
        """Disconnect a client; returns the notes."""
        known = self.connections.find(key or name)
        assert known is not None
        plan = plan_disconnect(find_client(name), known, self.connections)
        disconnect(plan, self.connections, self.environ)
        return [*plan.notes]

    def json(self, path: str) -> Any:
        return json.loads((self.home / path).read_text())

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        """Every file and folder of the home, with mode and content."""
        return {
            str(path.relative_to(self.home)): (path.lstat().st_mode, _content(path))
            for path in sorted(self.home.rglob("*"))
        }


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return bytes(path.readlink())
    return path.read_bytes() if path.is_file() else b""
