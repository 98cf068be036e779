"""The digest of what a person is asked about: equal digests mean the same thing would be done."""

import hashlib
import json
from dataclasses import asdict

from pydantic import JsonValue

from handrail.gate.tool import Plan
from handrail.store.value import Json


def canonical(value: Json) -> str:
    """One spelling for equal JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(tool: str, input: Json, plan: Plan, basis: str) -> str:
    """Of the call as it would run, and of `basis`: the rules that had a say in it."""
    return sealed(substance(tool, input, plan), basis)


def substance(tool: str, input: Json, plan: Plan) -> str:
    """What would be done, whatever the rules say of it. Takes a while for a large input."""
    claims: list[JsonValue] = [asdict(claim) for claim in plan.claims]
    return _hash({"tool": tool, "input": input, "bound": plan.bound, "claims": claims})


def sealed(substance: str, basis: str) -> str:
    """The digest of a substance under the rules of one moment."""
    return _hash({"substance": substance, "policy": basis})


def _hash(value: Json) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
