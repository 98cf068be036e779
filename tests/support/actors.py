"""Named people for the journal: the actors of answers and changes in tests."""

from handrail.store.actor import actor_from_text, person_on

ANN = actor_from_text("ann")
BOB = actor_from_text("bob")
PAGE = person_on("page")
