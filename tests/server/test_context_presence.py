"""Somebody is there to be asked while a person follows, and not while an agent does."""

from handrail.server.access import Person
from handrail.server.context import Presence

PERSON = Person(place="page", approves=True)
WATCHER = Person(place="command line", approves=False)


def test_people_are_there_for_as_long_as_they_follow() -> None:
    presence = Presence()
    with presence.following(PERSON):
        with presence.following(PERSON):
            assert presence.count() == 2
        assert presence.count() == 1
    assert presence.count() == 0


def test_whoever_only_watches_is_nobody_to_ask() -> None:
    presence = Presence()
    with presence.following(WATCHER):
        assert presence.count() == 0
