"""Actors that the tests use: people by their first names, which the records then show as they are."""

from handrail.store.actor import actor_from_text, person_on

ANN = actor_from_text("ann")
BOB = actor_from_text("bob")
PAGE = person_on("page")
