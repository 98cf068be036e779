/**
 * A call, an approval and a terminal made from the event that opened them; pure.
 *
 * Holds only facts of the event. Others stay absent until the view itself is fetched
 * (features/approvals/approvalDetails.svelte.ts, features/calls/typicalDurations.svelte.ts).
 */
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
    asked_at: null,
    reviewed_at: null,
    answered_at: null,
    answered_by: null,
    edited: false,
    ran_at: null,
    ended_at: null,
    waited_ms: 0,
    ran_ms: 0,
    exit_code: null,
    signal: null,
    handed_back: false,
    client_gone: false,
    stopped: false,
    allowed_by: null,
    by: null,
    message: "",
    terminal_id: null,
    approval_id: null,
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
    ...(call.input ? { input: call.input } : {}),
    claims: event.claims,
    preview: event.preview,
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
