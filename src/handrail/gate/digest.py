"""The digest of what a person is asked about: equal digests mean the same thing would be done."""

import hashlib
import json

from handrail.gate.tool import Plan
from handrail.store.value import Json


def canonical(value: Json) -> str:
    """One spelling for equal JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(tool: str, input: Json, plan: Plan, policy_version: str) -> str:
    bound: Json = {"tool": tool, "input": input, "bound": plan.bound, "policy": policy_version}
    return hashlib.sha256(canonical(bound).encode()).hexdigest()
