"""Who decides, as the record will say."""

from starlette.requests import HTTPConnection

from handrail.server.access import Person
from handrail.store.actor import Actor, person_on


def person_of(connection: HTTPConnection) -> Person:
    """Whom the guard let in."""
    return connection.scope["handrail.person"]


def by(connection: HTTPConnection) -> Actor:
    return person_on(person_of(connection).place)
