"""Who calls: a credential as the caller that the gate knows."""

from handrail.server.access import Callers, Client


def test_a_line_of_its_own_is_known_by_its_credential_and_what_it_calls_itself() -> None:
    client = Client(credential="k1", name="made for zed", workspace="/w")

    caller = Callers(lambda _thread: "o1").caller_of(client, "http", "Zed")

    assert (caller.door, caller.client, caller.key, caller.workspace) == ("http", "Zed", "k1", "/w")
    assert (caller.thread, caller.operation) == (None, None)


def test_an_agent_of_ours_calls_for_its_thread_and_for_the_prompt_that_runs_there() -> None:
    running = {"h1": "o7"}
    callers = Callers(running.get)
    client = Client(credential="k1", name="claude", workspace="/w", thread="h1")

    during = callers.caller_of(client, "stdio", "anything")
    running.clear()
    after = callers.caller_of(client, "http", "anything")

    assert (during.client, during.key, during.thread, during.operation) == ("claude", "h1", "h1", "o7")
    assert (after.key, after.thread, after.operation) == ("h1", "h1", None)
