"""Who decides, as the record will say."""

from starlette.requests import HTTPConnection

from handrail.server.access import Person


def person_of(connection: HTTPConnection) -> Person:
    """Whom the guard let in."""
    return connection.scope["handrail.person"]


def by(connection: HTTPConnection) -> str:
    return f"a person on the {person_of(connection).place}"
