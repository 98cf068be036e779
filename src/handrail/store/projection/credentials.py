"""What events about credentials change."""

from handrail.store.event import CredentialIssued, CredentialRevoked
from handrail.store.projection.statement import Statement


def statement(at: int, event: CredentialIssued | CredentialRevoked) -> Statement:
    match event:
        case CredentialIssued(credential=id, name=name, workspace=workspace, sha256=sha256):
            return (_ISSUED, (id, name, workspace, sha256, at))
        case CredentialRevoked(credential=id):
            return (_REVOKED, (at, id))


_ISSUED = """
INSERT INTO credentials (id, name, workspace, sha256, issued_at)
VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_REVOKED = "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
