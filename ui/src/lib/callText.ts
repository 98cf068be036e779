/**
 * Texts, icons and tones for the states of a call; pure. One place, so that a state looks the same everywhere. Tones
 * are class names (style.css).
 */
import type { ApprovalView, Asks, CallDetail, Caller, CallView, Json, Preview, Restart, Risk } from "../api/types.ts";
import type { KnownApproval, KnownCall } from "../state/model.ts";
import { pluralize } from "./duration.ts";
import { inputRequestText } from "./terminalText.ts";
import { splitEnter } from "./visibleText.ts";

export type Tone = "amber" | "blue" | "green" | "teal" | "red" | "grey" | "violet";
export type Sign = "needs" | "running" | "done" | "rule" | "completed" | "failed" | "denied" | "cancelled" | "gone" | "expired" | "withdrawn";

export interface StatusLabel {
  readonly sign: Sign;
  readonly tone: Tone;
  readonly word: string;
}

/** The daemon's message of an expired approval; the call itself records only a failure. */
const EXPIRED = /^Expired: (?=nobody answered)/;

/** `asks`: the input that its terminal waits for; `asked`: the state of its approval. */
export function callStatus(call: KnownCall, asks: Asks | null = null, asked: ApprovalView["status"] | null = null): StatusLabel {
  if ((asked === "expired" && call.status !== "waiting") || (call.status === "failed" && EXPIRED.test(call.message))) return { sign: "expired", tone: "violet", word: "expired" };
  if (asks && call.status === "running") return { sign: "needs", tone: "amber", word: inputRequestText(asks) };
  switch (call.status) {
    case "waiting":
      return { sign: "needs", tone: "amber", word: call.client_gone ? "needs you, agent gone" : "needs you" };
    case "running":
      if (call.client_gone) return { sign: "gone", tone: "violet", word: "agent gone" };
      if (call.caller.door === "hook" && call.handed_back) return { sign: "running", tone: "blue", word: "runs in the client" };
      return { sign: "running", tone: "blue", word: "running" };
    case "done": {
      const rule = decidingRule(call);
      const failure = exitFailure(call);
      if (failure) return { sign: "failed", tone: "red", word: isUnasked(call) ? `${failure}, unasked` : failure };
      if (isUnasked(call)) return { sign: "done", tone: "amber", word: "done, unasked" };
      return { sign: rule ? "rule" : "done", tone: "green", word: "done" };
    }
    case "completed":
      return { sign: "completed", tone: "teal", word: call.stopped ? "completed" : "completed, runs on" };
    case "failed":
      return { sign: "failed", tone: "red", word: `${exitFailure(call) ?? "failed"}${isUnasked(call) ? ", unasked" : ""}` };
    case "denied":
      return { sign: "denied", tone: "red", word: "denied" };
    case "cancelled":
      if (isWithdrawn(call)) return { sign: "withdrawn", tone: "grey", word: "withdrawn" };
      return { sign: "cancelled", tone: "grey", word: call.stopped ? "cancelled" : "cancelled, stopping" };
    case "interrupted":
      return { sign: "gone", tone: "violet", word: isUnasked(call) ? "interrupted, unasked" : "interrupted" };
  }
}

/** Whether the agent took its question back before anybody answered it. */
function isWithdrawn({ by, asked_at, reviewed_at, answered_at }: Pick<CallView, "by" | "asked_at" | "reviewed_at" | "answered_at">): boolean {
  return by === "client" && asked_at != null && reviewed_at == null && answered_at == null;
}

/** How the command of a call failed: `exit 1`, `SIGKILL`; null if it did not. The call itself may well be `done`. */
export function exitFailure({ exit_code, signal }: Pick<CallView, "exit_code" | "signal">): string | null {
  if (exit_code) return `exit ${exit_code}`;
  return signal;
}

/** The rule that allowed or denied the call, unless a person did. */
export function decidingRule(call: Pick<CallView, "status" | "allowed_by" | "by">): string | null {
  const decider = call.status === "denied" ? call.by : call.allowed_by;
  return decider?.startsWith("rule ") ? decider.slice("rule ".length) : null;
}

/** Whether an agent did this without asking; Handrail recorded it afterwards. */
export function isUnasked(call: Pick<CallView, "allowed_by">): boolean {
  return call.allowed_by === "nobody";
}

export function riskTone(risk: Risk): Tone {
  return ({ low: "grey", medium: "amber", high: "red" } as const)[risk];
}

export function riskWord(risk: Risk): string {
  return ({ low: "low", medium: "med", high: "high" } as const)[risk];
}

/** The headline of a call: the command, else verb and object. */
export function headline(call: Pick<CallView, "title">, approval?: KnownApproval): string {
  const preview = approval?.preview;
  if (preview?.kind === "command") return preview.command;
  if (preview?.kind !== "input") return call.title;
  const { text, enter } = splitEnter(preview.text);
  return [...(text || enter ? [`${text}${enter ? " ⏎" : ""}`] : []), ...preview.keys].join(" ");
}

/** The part of a text that fits a list row, and the number of hidden characters; the detail pane has all of it. */
export function excerpt(text: string, characters = 200, lines = 5): { shown: string; hidden: number } {
  const shown = text.slice(0, characters).split("\n").slice(0, lines).join("\n");
  return { shown, hidden: text.length - shown.length };
}

export function isCode(call: KnownCall): boolean {
  return call.tool === "execute_command" || call.tool === "send_to_terminal";
}

/** The subject of a call: verb and kind. */
export function callSubject(call: KnownCall, preview: Preview | null): string {
  if (preview?.kind === "command" || call.tool === "execute_command") return "Run command";
  if (preview?.kind === "input") return "Type into a terminal";
  if (preview?.kind === "form") return "Answer a question";
  if (preview?.kind === "diff" && call.assurance !== "forwarded") return preview.creates ? "Create file" : "Change file";
  return call.title;
}

/** The preview of a call; once written, the reviewed version and not the proposal. */
export function previewOf(detail: CallDetail | null, approval: KnownApproval | undefined): Preview | null {
  return written(detail) ?? detail?.preview ?? approval?.preview ?? null;
}

function written(of: CallDetail | null): Preview | null {
  const { applied, review, added, removed } = of?.result?.data ?? {};
  if (of?.preview?.kind !== "diff" || !review || typeof applied !== "string") return null;
  return { ...of.preview, diff: applied, added: Number(added), removed: Number(removed) };
}

/** Input fields in which agents explain themselves; shown separately, as the agent's words. */
const PROSE = /^(description|explanation|reason|why|justification|rationale|summary|comment|purpose)$/i;

/** The agent's own comment on its call; never the command itself. */
export function agentComment(input: Json): string {
  return Object.entries(input)
    .filter(([name, value]) => PROSE.test(name) && typeof value === "string" && value.trim())
    .map(([, value]) => String(value).trim())
    .join("\n");
}

/** How the agent gets the reason of a denial: ACP's answer to a permission request has no place for it. */
export function reasonDelivery({ tool, caller }: Pick<KnownApproval, "tool" | "caller">): string {
  const late = tool === "agent_work" && caller.door === "acp" && caller.client !== "handrail";
  return late ? `Reason; ${caller.client} reads it with its next prompt` : "Reason, sent to the agent";
}

/** The first sentence of a tool description; the rest is meant for agents. */
export function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;
}

export function workspaceName(caller: Caller): string {
  return caller.workspace?.split("/").filter(Boolean).at(-1) ?? "no workspace";
}

/** First line of the reason of its end, for a list row. */
export function callRemark(call: KnownCall): string {
  if (call.status === "done" || call.status === "waiting" || call.status === "running") return "";
  const line = (call.message.split("\n", 1)[0] ?? "").replace(EXPIRED, "");
  return line && `: ${line}`;
}

export function restartText(found: Pick<Restart, "crashed" | "interrupted" | "approvals_kept" | "terminals_adopted">): string {
  const facts = [
    `${pluralize(found.interrupted, "call")} interrupted`,
    `${pluralize(found.approvals_kept, "approval")} kept`,
    `${pluralize(found.terminals_adopted, "terminal")} re-adopted`,
  ];
  return `Daemon ${found.crashed ? "crashed and restarted" : "restarted"}: ${facts.join(", ")}.`;
}
