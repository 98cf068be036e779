"""Rows of the database as records.

Owns the way from columns and payloads to values. Does not know any query.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import fields
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from handrail.store.actor import actor_from_text
from handrail.store.event import (
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    CallStopped,
)
from handrail.store.records import (
    ApprovalRecord,
    CallDetail,
    CallRecord,
    ChangeRecord,
    CredentialRecord,
    FolderRecord,
    PromptRecord,
    RuleRecord,
    TerminalRecord,
    TypedRecord,
    UndoRecord,
)
from handrail.store.value import Caller, FileChange, Owner, Rule


def call_of(row: sqlite3.Row) -> CallRecord:
    return CallRecord(caller=caller_of(row), **columns_of(row, _CALL_COLUMNS))


def approval_of(row: sqlite3.Row) -> ApprovalRecord:
    asked = None if row["payload"] is None else _approval_payload.validate_json(row["payload"])
    return ApprovalRecord(
        caller=caller_of(row),
        claims=asked.claims if asked else (),
        reasons=asked.reasons if asked else (),
        why=asked.why if asked else "",
        preview=asked.preview if asked else None,
        verdicts=asked.verdicts if asked else (),
        edited=bool(row["edited"]),
        **columns_of(row, _APPROVAL_COLUMNS),
    )


def prompt_of(row: sqlite3.Row) -> PromptRecord:
    asked = None if row["payload"] is None else _approval_payload.validate_json(row["payload"])
    return PromptRecord(
        approval=row["id"],
        caller=caller_of(row),
        claims=asked.claims if asked else (),
        verdicts=asked.verdicts if asked else (),
        by=None if row["answered_by"] is None else actor_from_text(row["answered_by"]),
        edited=bool(row["edited"]),
        at=row["opened_at"],
        **columns_of(row, ("call", "tool", "title", "risk", "answer")),
    )


def rule_of(row: sqlite3.Row) -> RuleRecord:
    return RuleRecord(rule=_rules.validate_json(row["rule"]), **columns_of(row, _RULE_COLUMNS))


def folder_of(row: sqlite3.Row) -> FolderRecord:
    return FolderRecord(**columns_of(row, _FOLDER_COLUMNS))


def change_of(row: sqlite3.Row) -> ChangeRecord:
    change = FileChange(made=tuple(json.loads(row["made"])), **columns_of(row, _FILE_COLUMNS))
    return ChangeRecord(change=change, **columns_of(row, _CHANGE_COLUMNS))


def undo_of(row: sqlite3.Row) -> UndoRecord:
    return UndoRecord(calls=tuple(json.loads(row["calls"])), **columns_of(row, ("id", "by", "at")))


def terminal_of(row: sqlite3.Row) -> TerminalRecord:
    return TerminalRecord(
        owner=_owner_of(row),
        argv=tuple(json.loads(row["argv"])),
        **{name: bool(row[name]) for name in _TERMINAL_YES_NO},
        **columns_of(row, _TERMINAL_COLUMNS),
    )


def typed_of(row: sqlite3.Row) -> TypedRecord:
    return TypedRecord(person=bool(row["person"]), **columns_of(row, _TYPED_COLUMNS))


def credential_of(row: sqlite3.Row) -> CredentialRecord:
    return CredentialRecord(**columns_of(row, _CREDENTIAL_COLUMNS))


def detail_of(
    call: CallRecord, approval: ApprovalRecord | None, payloads: Iterable[sqlite3.Row]
) -> CallDetail:
    """A call with what its own events hold; `payloads` in their order, the erased ones missing."""
    given = edited = result = receipt = None
    claims, files = approval.claims if approval else (), ()
    for row in payloads:
        match _call_payload.validate_json(row["payload"]):
            case CallOpened(input=given):
                pass
            case ApprovalAnswered(input=edited):
                pass
            case CallStarted(claims=claims, files=files):
                pass
            case CallSettled(result=result, receipt=receipt):
                pass
            case CallStopped(receipt=receipt):
                pass
    return CallDetail(
        call=call,
        input=given if edited is None else edited,
        asked=None if edited is None else given,
        claims=claims,
        preview=approval.preview if approval else None,
        approval=approval,
        files=files,
        result=result,
        receipt=receipt,
    )


def caller_of(row: sqlite3.Row) -> Caller:
    return Caller(key=row["caller_key"], **columns_of(row, _CALLER_COLUMNS))


def _owner_of(row: sqlite3.Row) -> Owner | None:
    if row["owner_name"] is None:
        return None
    return Owner(person=bool(row["owner_person"]), name=row["owner_name"], workspace=row["owner_workspace"])


def columns_of(row: sqlite3.Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def column_names(record: type, *apart: str) -> tuple[str, ...]:
    """The fields that are columns of the same name."""
    return tuple(field.name for field in fields(record) if field.name not in apart)


_rules: TypeAdapter[Rule] = TypeAdapter(Rule)
_approval_payload: TypeAdapter[ApprovalOpened] = TypeAdapter(ApprovalOpened)
CallPayload = Annotated[
    CallOpened | ApprovalAnswered | CallStarted | CallSettled | CallStopped, Field(discriminator="kind")
]
"""The events that hold the large parts of a call."""
_call_payload: TypeAdapter[CallPayload] = TypeAdapter(CallPayload)
_CALLER_COLUMNS = column_names(Caller, "key")
_CALL_COLUMNS = column_names(CallRecord, "caller")
_APPROVAL_COLUMNS = column_names(
    ApprovalRecord, "caller", "claims", "reasons", "why", "preview", "verdicts", "edited"
)
_RULE_COLUMNS = column_names(RuleRecord, "rule")
_FOLDER_COLUMNS = column_names(FolderRecord)
_FILE_COLUMNS = column_names(FileChange, "made")
_CHANGE_COLUMNS = column_names(ChangeRecord, "change")
_TERMINAL_YES_NO = ("lost", "taken_holds", "asked_secret")
_TERMINAL_COLUMNS = column_names(TerminalRecord, "owner", "argv", *_TERMINAL_YES_NO)
_TYPED_COLUMNS = column_names(TypedRecord, "person")
_CREDENTIAL_COLUMNS = column_names(CredentialRecord)
