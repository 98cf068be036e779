"""The sessions of each credential: a bound, and the idle one that was used least recently makes room."""

from handrail.server.mcp.streamable_http import Sessions


def opened(sessions: Sessions, credential: str, *names: str) -> list[str]:
    """Open sessions; the ones that had to make room."""
    ended: list[str] = []
    for name in names:
        with sessions.opening(credential):
            sessions.open(credential, name)
        ended += sessions.take_excess(credential)
    return ended


def test_the_least_recently_used_session_makes_room() -> None:
    sessions = Sessions(limit=3)
    assert opened(sessions, "k", "a", "b", "c") == []
    with sessions.using("k", "a"):
        pass
    assert opened(sessions, "k", "d", "e") == ["b", "c"]
    assert [name for name in "abcde" if sessions.is_open("k", name)] == ["a", "d", "e"]


def test_a_session_with_a_request_in_progress_is_kept() -> None:
    sessions = Sessions(limit=2)
    opened(sessions, "k", "a", "b")
    with sessions.using("k", "a"):
        assert opened(sessions, "k", "c", "d") == ["b", "c"]
        assert sessions.is_open("k", "a")


def test_no_session_opens_while_all_are_busy() -> None:
    sessions = Sessions(limit=2)
    opened(sessions, "k", "a", "b")
    with sessions.using("k", "a"), sessions.using("k", "b"):
        assert not sessions.can_open("k")
        assert sessions.can_open("other")
    assert sessions.can_open("k")


def test_requests_that_open_sessions_at_the_same_time_count() -> None:
    sessions = Sessions(limit=2)
    with sessions.opening("k"), sessions.opening("k"):
        assert not sessions.can_open("k")
    assert sessions.can_open("k")


def test_a_session_belongs_to_the_credential_that_opened_it() -> None:
    sessions = Sessions()
    opened(sessions, "k", "a")
    assert not sessions.is_open("other", "a")
    sessions.close("other", "a")
    assert sessions.is_open("k", "a")
    sessions.close("k", "a")
    assert not sessions.is_open("k", "a")
