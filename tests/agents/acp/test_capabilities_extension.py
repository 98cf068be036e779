"""What our own agent is told apart from its environment, and how what it is busy with comes to a desk."""

from handrail.agents.acp.capabilities import (
    ACTIVITY_UPDATE,
    INITIALIZE_PARAMS,
    build_initialize_params,
    merge_environment,
    split_keys,
    update_from_activity,
)
from handrail.config import OWN_COMMAND, AgentSection

ENV = {"HOME": "/h", "ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u", "https_proxy": "p"}


def test_keys_are_no_part_of_our_own_agents_environment() -> None:
    own = AgentSection(name="handrail", command=OWN_COMMAND)
    assert split_keys(own, ENV) == (
        {"HOME": "/h", "https_proxy": "p"},
        {"ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "u"},
    )


def test_an_address_that_is_brought_along_gets_no_key_that_was_there_before() -> None:
    standing = {"OPENAI_API_KEY": "ours", "ANTHROPIC_API_KEY": "ours", "HOME": "/h"}
    address = {"OPENAI_BASE_URL": "http://elsewhere"}
    assert merge_environment(standing, address) == {"ANTHROPIC_API_KEY": "ours", "HOME": "/h", **address}
    theirs = {**address, "OPENAI_API_KEY": "theirs"}
    assert merge_environment(standing, theirs) == {"ANTHROPIC_API_KEY": "ours", "HOME": "/h", **theirs}
    assert merge_environment({**standing, **address}, {}) == {**standing, **address}
    assert merge_environment(standing, {"OPENAI_API_KEY": "theirs"})["OPENAI_API_KEY"] == "theirs"


def test_what_a_person_passes_to_another_program_is_in_its_environment() -> None:
    assert split_keys(AgentSection(name="other", command=("other",)), ENV) == (ENV, {})


def test_the_greeting_holds_keys_only_where_there_are_any() -> None:
    assert build_initialize_params({}) == INITIALIZE_PARAMS
    assert build_initialize_params({"OPENAI_API_KEY": "k"})["_meta"] == {
        "handrail": {"keys": {"OPENAI_API_KEY": "k"}}
    }
    assert "_meta" not in INITIALIZE_PARAMS


def test_an_activity_keeps_its_place_among_what_is_said_of_its_session() -> None:
    told = update_from_activity({"sessionId": "s1", "activity": {"id": "a1"}})
    assert told == {"sessionId": "s1", "update": {"sessionUpdate": ACTIVITY_UPDATE, "activity": {"id": "a1"}}}
    assert update_from_activity({}) == {
        "sessionId": None,
        "update": {"sessionUpdate": ACTIVITY_UPDATE, "activity": None},
    }
