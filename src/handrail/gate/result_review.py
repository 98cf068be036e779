"""The review of a result: a person sees what another server answered before the client gets it.

The call has run. The person passes the answer on, replaces it with a text of their own, or withholds it.
"""

from dataclasses import asdict, replace

from handrail.gate.approval import Answer, Approval, format_age
from handrail.gate.call import Call, Outcome
from handrail.gate.draft import canonical_json, seal
from handrail.gate.feedback import join_comments
from handrail.store.actor import HANDRAIL, actor_from_text
from handrail.store.events import ApprovalOpened
from handrail.store.values import Json, Preview, Result, ResultPreview

EDITED = "A person changed this result before you got it."
HAS_RUN = "It has run already, so its input cannot be changed and no rule can decide it. Change the text of its result instead."
WHY = "The result waits for a review, as `review_results` of this server says."
STOPPED_REVIEW = "This ran, and Handrail stopped while a person looked at its result, which is withheld. Do not repeat it to see that."
HIDDEN = "Only a person sees what the server returned."
_DO_NOT_REPEAT = "The call itself has run: do not repeat it to see the result."


def open_review(id: str, call: Call, preview: ResultPreview) -> ApprovalOpened:
    """The question about an answer. It has no claims: no rule can answer it."""
    return ApprovalOpened(
        approval=id,
        call=call.id,
        digest=seal(call.id, canonical_json(asdict(preview))),
        claims=(),
        risk="medium",
        reasons=(f"the MCP server {preview.server} returned this, and the agent may follow what it says",),
        why=WHY,
        preview=preview,
    )


def hide_result(preview: Preview | None) -> Preview | None:
    """The preview for those who only watch, an agent's command line among them: without what a server returned."""
    if not isinstance(preview, ResultPreview):
        return preview
    return ResultPreview(server=preview.server, is_error=preview.is_error, text="", notes=(HIDDEN,))


_SHOWN = ("exit_code", "signal")
FORWARDED = "__"
"""In the names of other servers' tools, and of no tool of our own."""


def hide_output(result: Result | None) -> Result | None:
    """The result for those who only watch: without what the call read or printed."""
    if result is None:
        return None
    return Result(text="", data={name: result.data[name] for name in _SHOWN if name in result.data})


def hide_message(settled_by: str | None, message: str | None) -> str:
    """The sentence about an outcome for those who only watch: empty where it may hold the words of another server."""
    by = actor_from_text(settled_by or "")
    return "" if by.kind == "named" and FORWARDED in by.name else message or ""


def is_review(approval: Approval) -> bool:
    """Whether the question is about a result, and not about a call that may run."""
    return isinstance(approval.asked.preview, ResultPreview)


def edited_preview(approval: Approval, content: str | None) -> ResultPreview:
    """What the agent would get, with a person's text in place of the answer."""
    preview = approval.asked.preview
    assert isinstance(preview, ResultPreview)
    return preview if content is None else replace(preview, text=content, structured="", notes=())


def reviewed_outcome(approval: Approval, outcome: Outcome, answer: Answer | None) -> Outcome:
    """The outcome of the call after the review; None as the answer means that the question expired."""
    if answer is None:
        age = format_age(approval.expired_ms or 0)
        message = f"Nobody looked at the result within {age}, so it is withheld. {_DO_NOT_REPEAT}"
        return Outcome(ending="failed", by=HANDRAIL, message=message)
    if answer.kind == "deny":
        reason = join_comments(answer.reason, answer.comments)
        text = f"The result of this call is withheld. {_DO_NOT_REPEAT}"
        withheld = Result(text=text, data={"result_withheld": True})
        return Outcome(ending="denied", by=answer.by, message=reason, result=withheld)
    if answer.content is None:
        return outcome
    text = answer.content
    data: Json = {"result_edited": True}
    if outcome.ending == "done":
        return replace(outcome, result=Result(text=f"{EDITED}\n\n{text}", data=data))
    return replace(outcome, message=EDITED, result=Result(text=text, data=data))
