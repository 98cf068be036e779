"""Pins: a tool that its server describes in other words than before asks a person, also after a restart."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.gate.rules.policy import FolderSettings, Policy
from handrail.gate.tool import CallReport
from handrail.store.journal import open_journal
from handrail.store.rule_replay import replay_rules
from handrail.store.values import Caller, Json, Rule
from handrail.upstream._tool_pins import ToolPins
from handrail.upstream.forwarded_tool import ForwardedInput, ForwardedTool
from handrail.upstream.tool_definition import ToolDefinition, read_definitions

CALLER = Caller(door="stdio", client="test", key="k", workspace="/w")
TRUSTING = Policy([Rule(id="r1", effect="allow", server="fs")], FolderSettings(trusted=True), root="/w")
FIRST: dict[str, Any] = {
    "name": "read",
    "description": "Reads a file of the project.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


class Nowhere:
    def mask(self, text: str) -> str:
        return text

    def reviews_results(self, server: str) -> bool:
        return False

    async def forward(self, tool: ToolDefinition, arguments: Json, call: CallReport) -> Json:
        raise AssertionError


def variants() -> list[dict[str, Any]]:
    words = [
        {**FIRST, "description": f"Reads a file.{mark}"}
        for mark in ("", " ", "\u200b", "\n", "!", "\u202e", "\t")
    ]
    hints = [
        {**FIRST, "annotations": {name: True}}
        for name in ("readOnlyHint", "destructiveHint", "idempotentHint")
    ][1:]
    schemas = [
        {
            **FIRST,
            "inputSchema": {
                "type": "object",
                "properties": {"path": {"type": "string", "description": f"and {n}"}},
            },
        }
        for n in range(20)
    ]
    fields = [{**FIRST, "title": f"Title {n}"} for n in range(11)]
    outputs = [{**FIRST, "outputSchema": {"type": "object", "title": str(n)}} for n in range(10)]
    return [*words, *hints, *schemas, *fields, *outputs]


async def effect(pins: ToolPins) -> str:
    """The decision about a call of the tool, where a rule allows its whole server."""
    definition = pins.get("fs", "read")
    assert definition is not None
    forwarded = ForwardedTool(definition, pins, Nowhere(), lambda _caller, _path: None)
    plan = await forwarded.plan(ForwardedInput.model_validate({"path": "a"}), CALLER)
    return TRUSTING.decide(forwarded.name, plan.claims, CALLER, plan.server).effect


async def test_fifty_ways_to_change_a_definition_between_two_daemons_all_ask_again(home: Path) -> None:
    database = home / "handrail.db"
    async with open_journal(database, home / "handrail.head") as journal:
        pins = ToolPins(journal, ())
        pins.see("fs", read_definitions("fs", [FIRST]).tools, {"tools": {}})
        assert await effect(pins) == "allow"
        await journal.written()
    async with open_journal(database, home / "handrail.head") as journal:
        pinned = replay_rules(database).servers
        effects = list[str]()
        for changed in variants():
            pins = ToolPins(journal, pinned)
            pins.see("fs", read_definitions("fs", [changed]).tools, {"tools": {}})
            effects.append(await effect(pins))
            assert json.dumps(pins.list("fs")[0].wire) == json.dumps(FIRST)

    assert effects == ["ask"] * 50


@pytest.mark.parametrize("gone", [False, True])
async def test_an_accepted_definition_asks_no_more_and_a_tool_that_comes_back_changed_does(
    home: Path, gone: bool
) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        pins = ToolPins(journal, ())
        changed = {**FIRST, "description": "Reads a file, and sends it."}
        pins.see("fs", read_definitions("fs", [FIRST]).tools, {})
        if gone:
            pins.see("fs", read_definitions("fs", []).tools, {})
            assert pins.list("fs") == []
        pins.see("fs", read_definitions("fs", [changed]).tools, {})
        before = await effect(pins)
        pins.accept(read_definitions("fs", [changed]).tools["read"], "call:c1")
        after = await effect(pins)

    assert (before, after) == ("ask", "allow")


async def test_definitions_that_another_process_lists_again_are_held_once(home: Path) -> None:
    def with_default(value: object) -> dict[str, Any]:
        return {**FIRST, "name": "find", "inputSchema": {"type": "object", "default": value}}

    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        pins = ToolPins(journal, ())
        pins.see("fs", read_definitions("fs", [FIRST, with_default(1)]).tools, {})
        again = pins.share(read_definitions("fs", [{**FIRST}, with_default(True)]))

    assert again.tools["read"] is pins.get("fs", "read")
    assert again.tools["find"] is not pins.get("fs", "find"), "1 == True, but another definition"
