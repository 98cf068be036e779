"""Builds the MCP servers behind the gate, with what only the daemon knows: environment, protected places, the policy."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.config import Config
from handrail.gate.gate import Gate
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.gate.tool import Refusal, Tool
from handrail.paths import Places
from handrail.store.values import Caller, Claim
from handrail.terminal.terminals import Terminals
from handrail.tools.tool_context import child_environment
from handrail.tools.workspace import Workspace
from handrail.upstream.secret_store import SecretStore
from handrail.upstream.servers import Servers


def build_servers(
    config: Config,
    terminals: Terminals,
    gate: Gate,
    toolbox: dict[str, Tool[Any, Any]],
    places: Places,
    policy: AcceptedPolicy,
) -> Servers:
    """Handrail's own places are protected. The tools are added to `toolbox`, which is the gate's."""

    own = places.own_folders

    def environment(passed: Sequence[str]) -> Mapping[str, str]:
        return child_environment(os.environ, passed)

    def place(caller: Caller, path: str) -> Claim | None:
        """The claim on a path that a call names: Handrail does not see whether the server reads or writes it."""
        try:
            return Workspace.of(caller, own).place(path).claim("write")
        except Refusal:  # in /proc, which shows the server other things than Handrail, or a loop of symlinks
            return Claim(action="write", resource=path, inside=False)

    return Servers(
        config.servers,
        terminals,
        environment,
        gate.journal,
        toolbox,
        place,
        SecretStore(places.secrets),
        is_held=lambda: policy.holds_config,
        is_open=lambda call: call in gate.open,
    )
