"""Who decides, as the record will say."""

from fastapi import Request

from handrail.server.access import Person


def by(request: Request) -> str:
    person: Person = request.scope["handrail.person"]
    return f"a person on the {person.place}"
