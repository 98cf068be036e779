"""Questions about rules and trusted folders. Does not know the rules of files, which are in no record."""

from handrail.store.query.asking import Asking
from handrail.store.records import FolderRecord, RuleRecord, Use
from handrail.store.rows import folder_of, rule_of


class Rules(Asking):
    """What is known of rules and folders."""

    async def rules(self) -> list[RuleRecord]:
        """Every rule a person ever made, oldest first; the removed ones say so."""
        return await self._all(rule_of, "SELECT * FROM rules ORDER BY added_seq")

    async def uses(self) -> dict[str, Use]:
        """How often each rule decided something, by its id; built-in ones by their name."""
        found = await self._all(tuple, "SELECT rule, hits, last_used_at, last_call FROM rule_uses")
        return {rule: Use(hits, last_used_at, last_call) for rule, hits, last_used_at, last_call in found}

    async def folders(self) -> list[FolderRecord]:
        """Those that are trusted, by their name."""
        return await self._all(folder_of, "SELECT * FROM folders ORDER BY folder")
