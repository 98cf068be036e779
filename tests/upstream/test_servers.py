"""The MCP servers behind the gate, without a daemon."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import anyio
import pytest

from handrail.config import McpServerSection
from handrail.gate.tool import Refusal
from handrail.store.journal import open_journal
from handrail.store.values import Caller
from handrail.terminal.terminals import Terminals
from handrail.upstream.no_client import NoClient
from handrail.upstream.secret_store import SecretStore
from handrail.upstream.servers import Servers

CALLER = Caller(door="stdio", client="test", key="k", workspace="/w")


async def test_a_fault_costs_the_server_that_hit_it_and_no_other(home: Path) -> None:
    def build_environment(_names: Sequence[str]) -> Mapping[str, str]:
        raise UnicodeError("not foreseen")

    sections = [McpServerSection(name=name, command=("true",)) for name in ("one", "two")]
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        servers = Servers(
            sections,
            cast("Terminals", None),  # nothing is started
            build_environment,
            journal,
            {},
            lambda _caller, _path: None,
            SecretStore(home / "secrets.json"),
            is_held=lambda: False,
            is_open=lambda _id: False,
        )
        async with anyio.create_task_group() as group:
            await group.start(servers.run, [])
            for name in ("one", "two"):
                with pytest.raises(Refusal, match=f"{name} was ended by a fault in Handrail"):
                    async with servers.using(name, "key", NoClient(CALLER)):
                        raise AssertionError("it did not start")
            group.cancel_scope.cancel()
