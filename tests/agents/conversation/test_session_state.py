"""What an agent says of a conversation as a whole, in our words."""

from collections.abc import Mapping
from typing import Any

from handrail.agents.conversation import session_state


def stated(update: Any, before: Mapping[str, Any]) -> Any:
    return session_state.state_from_update(update, before)


def test_modes_are_those_of_the_session_and_change_by_their_id() -> None:
    offered = {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
    }
    told = stated({"sessionUpdate": "_modes", "modes": offered}, {})
    name, modes = told
    assert name == "modes"
    assert modes == {
        "current": "ask",
        "modes": [
            {"id": "ask", "name": "Ask", "description": ""},
            {"id": "code", "name": "Code", "description": ""},
        ],
    }
    changed = stated({"sessionUpdate": "current_mode_update", "currentModeId": "code"}, {"modes": modes})
    assert changed == ("modes", {**modes, "current": "code"})


def test_options_have_choices_in_groups_or_none() -> None:
    model = {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "big",
        "options": [
            {"group": "g", "name": "Ours", "options": [{"value": "big", "name": "Big"}]},
            {"value": "small", "description": "Quick"},
        ],
    }
    fast = {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": True}
    told = stated({"sessionUpdate": "config_option_update", "configOptions": [model, fast, {}]}, {})
    assert told == (
        "options",
        {
            "options": [
                {
                    "id": "model",
                    "name": "Model",
                    "description": "",
                    "category": "model",
                    "type": "select",
                    "value": "big",
                    "choices": [
                        {"value": "big", "name": "Big", "description": "", "group": "Ours"},
                        {"value": "small", "name": "small", "description": "Quick", "group": ""},
                    ],
                },
                {
                    "id": "fast",
                    "name": "Fast",
                    "description": "",
                    "category": "",
                    "type": "boolean",
                    "value": True,
                    "choices": [],
                },
            ]
        },
    )


def test_commands_have_a_name_without_its_slash() -> None:
    told = stated(
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": "/web", "description": "Search", "input": {"hint": "what"}},
                "nonsense",
            ],
        },
        {},
    )
    assert told == ("commands", {"commands": [{"name": "web", "description": "Search", "hint": "what"}]})


def test_usage_has_a_cost_where_one_is_told() -> None:
    cost = {"amount": 1, "currency": "EUR"}
    told = stated({"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": cost}, {})
    assert told == ("usage", {"used": 5, "size": 9, "cost": {"amount": 1.0, "currency": "EUR"}})
    told = stated({"sessionUpdate": "usage_update", "used": "many", "cost": {"amount": True}}, {})
    assert told == ("usage", {"used": 0, "size": 0, "cost": None})


def test_what_is_said_of_anything_else_is_no_state() -> None:
    assert stated({"sessionUpdate": "agent_message_chunk"}, {}) is None
    assert stated({}, {}) is None
