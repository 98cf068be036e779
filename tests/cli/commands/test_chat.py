"""`handrail chat` with the demo's agent: one prompt, for a program, and a whole conversation with a question inline."""

import json
import re

import pytest
from tests.support.cli_home import Home, Screen
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import model_server

pytestmark = pytest.mark.e2e


def test_one_prompt_is_answered_and_kept_and_the_next_one_goes_on_with_it(handrail: Home) -> None:
    told = handrail.ok("chat", "--agent", "demo", "--new", "plan")
    assert "✓ Look around" in told.out
    assert "That was my plan" in told.out
    handrail.ok("chat", "hello")
    kept = handrail.ok("threads", "--here", "--json").json
    assert [(row["agent"], row["messages"], row["stop"]) for row in kept] == [("demo", 4, "end_turn")]


def test_a_program_gets_each_update_and_how_it_ended(handrail: Home) -> None:
    told = handrail.ok("chat", "--agent", "demo", "--new", "--json", "plan")
    *updates, last = [json.loads(line) for line in told.out.splitlines()]
    assert set(last) == {"stop_reason", "thread"}
    assert last["stop_reason"] == "end_turn"
    assert {"text", "thought", "plan"} <= {each["update"] for each in updates}
    said = "".join(each["text"] for each in updates if each["update"] == "text")
    assert said.startswith("Look around")
    assert "plan\n" not in said  # what the person said is not said back


def test_an_agent_that_breaks_is_a_failure_with_its_last_words(handrail: Home) -> None:
    told = handrail.run("chat", "--agent", "demo", "--new", "break")
    assert told.code == 1
    assert "in the middle of a sent\n" in told.out
    assert "exit code 3" in told.out
    assert "I was told to break" in told.out
    assert "It failed." in told.err


def test_bad_options_are_a_sentence(handrail: Home) -> None:
    assert "not both" in handrail.run("chat", "--thread", "h1", "--new", "hello").err
    assert "Give a prompt" in handrail.run("chat", "--json").err
    unknown = handrail.run("chat", "--agent", "nobody", "--new", "hello")
    assert (unknown.code, "nobody" in unknown.err, "handrail agents" in unknown.err) == (1, True, True)
    assert "There is no thread hxyz" in handrail.run("chat", "--thread", "hxyz", "hello").err


def test_a_conversation_asks_inline_and_ctrl_c_stops_the_agent_and_not_the_conversation(
    handrail: Home,
) -> None:
    with Screen(handrail, "chat", "--agent", "demo", "--new") as screen:
        screen.shows("Ctrl-D leaves.")
        screen.shows("> ")
        screen.type("edit\n")
        screen.shows("[a]llow once")
        screen.press("a", "✓ allowed")
        screen.shows("Written.")
        assert "demo agent" in (handrail.workspace / "handrail-demo-notes.md").read_text()
        screen.shows("> ")
        screen.type("hang\n")
        screen.shows("doing nothing now")
        screen.shows("at once.")
        screen.type("\x03")
        screen.shows("Stopped.")
        screen.shows("> ")
        screen.type("\x04")
        assert screen.ends() == 0


def test_what_our_own_agent_is_doing_stands_on_a_line_that_goes_when_it_has_done_it(handrail: Home) -> None:
    prompt = script(
        Turn("I wait for you.\n", "execute_command", {"command": "true"}, hold="thinking"), Turn("Done.")
    )
    with model_server() as model:
        handrail.env |= {"ANTHROPIC_API_KEY": "sk-somebody", "ANTHROPIC_BASE_URL": model.url}
        with Screen(handrail, "chat", "--agent", "handrail", "--new", prompt) as screen:
            screen.shows("Step 1 · asking claude-")
            screen.shows(" · 0:01")  # it counts
            model.let_go("thinking")
            shown = screen.shows("I wait for you.") + screen.press("a", "✓ allowed") + screen.shows("Done.\n")
            assert screen.ends() == 0
        piped = handrail.ok("chat", "--agent", "handrail", "--new", script(Turn("Hi.")))
    assert re.search(r"\r\x1b\[2KI wait", shown)
    assert not re.search(r"Step \d[^\r]*\n", shown)  # no such line is ever left behind
    assert (piped.out, piped.err) == ("Hi.\n", "")  # where there is no terminal, nothing jumps


def test_a_line_typed_while_our_own_agent_works_steers_it(handrail: Home) -> None:
    prompt = script(Turn("I look.\n", "list_files", {"path": "."}, hold="looking"), Turn("With tabs then.\n"))
    with model_server() as model:
        handrail.env |= {"ANTHROPIC_API_KEY": "sk-somebody", "ANTHROPIC_BASE_URL": model.url}
        with Screen(handrail, "chat", "--agent", "handrail", "--new") as screen:
            screen.shows("> ")
            screen.type(f"{prompt}\n")
            screen.shows("asking claude-")
            screen.type("use tabs\n")
            screen.shows("Given to the agent while it works.")
            model.let_go("looking")
            screen.shows("With tabs then.")
            screen.shows("> ")
            screen.type("\x04")
            assert screen.ends() == 0
        assert "use tabs" in str(model.asked[1].body["messages"])
    (row,) = handrail.ok("threads", "--here", "--json").json
    assert (row["messages"], row["stop"]) == (4, "end_turn")


def test_a_line_for_an_agent_that_cannot_be_steered_is_queued_and_follows(handrail: Home) -> None:
    with Screen(handrail, "chat", "--agent", "demo", "--new") as screen:
        screen.shows("> ")
        screen.type("hang\n")
        screen.shows("at once.")
        screen.type("hello\n")
        screen.shows("Queued: the agent gets it when it has finished this.")
        screen.type("\x03")
        screen.shows("Kept in the queue: 1 message.")
        screen.shows("> ")
        screen.type("\x04")
        assert screen.ends() == 0
    (row,) = handrail.ok("threads", "--here", "--json").json
    assert row["queued"] == 1


def test_a_prompt_for_a_thread_at_work_waits_and_cancels_nothing(handrail: Home) -> None:
    with Screen(handrail, "chat", "--agent", "demo", "--new") as first:
        first.shows("> ")
        first.type("hang\n")
        first.shows("starting demo")
        first.shows("at once.")
        with Screen(handrail, "chat", "hello") as second:
            second.shows("Connecting to Handrail")
            second.shows("This thread is at work, so your prompt waits in its queue.")
        (row,) = handrail.ok("threads", "--here", "--json").json
        assert row["operation"] is not None
        assert row["queued"] == 1
