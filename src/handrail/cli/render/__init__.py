"""Output for people: tables, cards, formats."""
