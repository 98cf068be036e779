"""Questions about credentials."""

from handrail.store.query.asking import Asking
from handrail.store.records import CredentialRecord
from handrail.store.rows import credential_of


class Credentials(Asking):
    """What is known of credentials."""

    async def credentials(self) -> list[CredentialRecord]:
        """Every one ever issued, oldest first; the revoked ones say so."""
        return await self._all(credential_of, "SELECT * FROM credentials ORDER BY issued_at, id")
