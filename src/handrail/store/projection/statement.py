"""One change of the tables: SQL and what goes into it. Does not know what it is about."""

Statement = tuple[str, tuple[str | int | None, ...]]
