/** A call, a question and a terminal as they first appear, made from the event that opened them; pure. */
import type { EventOf } from "../api/types.ts";
import type { TrackedApproval, TrackedCall, TrackedTerminal } from "./model.ts";

export function callFromEvent(event: EventOf<"CallOpened">, seq: number, at: number, skew: number): TrackedCall {
  return {
    id: event.call,
    seq,
    tool: event.tool,
    title: event.title,
    status: "running",
    caller: event.caller,
    assurance: event.assurance,
    thread: event.caller.thread ?? null,
    started_at: at,
    elapsed_ms: 0,
    handed_back: false,
    client_gone: false,
    stopped: false,
    allowed_by: null,
    by: null,
    message: "",
    terminal_id: null,
    approval_id: null,
    usual: null,
    since: at + skew,
    touched: seq,
    input: event.input,
  };
}

export function approvalFromEvent(event: EventOf<"ApprovalOpened">, call: TrackedCall, at: number, since: number): TrackedApproval {
  return {
    id: event.approval,
    call_id: event.call,
    tool: call.tool,
    title: call.title,
    description: "",
    status: "open",
    risk: event.risk,
    reasons: event.reasons,
    why: event.why,
    verdicts: event.verdicts ?? [],
    digest: event.digest,
    asked_at: at,
    elapsed_ms: 0,
    caller: call.caller,
    client_gone: call.client_gone,
    input: call.input ?? {},
    claims: event.claims,
    preview: event.preview,
    risks: [],
    // the rest is asked for when somebody looks (question.svelte.ts)
    reviewable: false,
    can_edit: true,
    why_not_edit: "",
    trusted: true,
    suggestions: [],
    usual: null,
    edited: false,
    reason: "",
    by: null,
    since,
  };
}

export function terminalFromEvent(event: EventOf<"TerminalOpened">, seq: number, since: number): TrackedTerminal {
  const { terminal, name, of, owner, call } = event;
  return { id: terminal, name, of: of ?? "command", owner: owner ?? null, call_id: call, asks: null, taken: null, since, touched: seq };
}
