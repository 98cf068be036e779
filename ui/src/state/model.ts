/**
 * The page's model: a snapshot, advanced by journal entries. Pure functions, no browser.
 *
 * Untouched calls keep their identity, so that only changed rows are redrawn.
 */
import type { ApprovalView, Asks, CallView, Entry, EventOf, Json, LiveEntries, PolicyView, Restart, State, TerminalView } from "../api/types.ts";
import { ranSpan, spanMs, waitedMs } from "../lib/callTimes.ts";
import { approvalFromEvent, callFromEvent, terminalFromEvent } from "./fromEvents.ts";

/** A call as far as the page knows it: `CallOpened` does not carry how long such calls take. */
export interface KnownCall extends Omit<CallView, "usual">, Partial<Pick<CallView, "usual">> {}

export interface TrackedCall extends KnownCall {
  /** When it began, on this page's monotonic clock: timers survive a wrong or jumping wall clock. */
  readonly since: number;
  /** The sequence number of the last event about it; details are fetched again when it grows. */
  readonly touched: number;
  readonly input?: Json;
}

/** Facts of an approval that `ApprovalOpened` does not carry. They are absent until the approval itself is fetched. */
type FetchedApprovalFacts = "description" | "input" | "risks" | "reviewable" | "can_edit" | "why_not_edit" | "trusted" | "suggestions" | "usual";

/** An approval as far as the page knows it. Components show nothing for an absent fact; they never assume one. */
export interface KnownApproval extends Omit<ApprovalView, FetchedApprovalFacts>, Partial<Pick<ApprovalView, FetchedApprovalFacts>> {}

export interface TrackedApproval extends KnownApproval {
  readonly since: number;
  /** The ids of the rules that were made with the answer. */
  readonly rules?: readonly string[];
}

/** A running terminal, with the facts that lists need; the rest is fetched where it is shown. */
export interface TrackedTerminal extends Pick<TerminalView, "id" | "name" | "of" | "owner" | "call_id" | "asks" | "taken"> {
  /** When it began to wait for input, on this page's clock. */
  readonly since: number;
  readonly touched: number;
}

export interface Model {
  readonly seq: number;
  /** Adding this to the daemon's time gives this page's monotonic time. */
  readonly skew: number;
  readonly version: string;
  readonly started: Restart;
  readonly autoApprove: boolean;
  readonly humanInTheLoop: boolean;
  /** Whether rules and settings are in force, and what changed without Handrail. */
  readonly policy: PolicyView;
  /** Since when all agents are paused, and by whom; null if they are not. */
  readonly pause: { readonly since: number; readonly by: string } | null;
  /** The sequence number of the last event about rules or trusted folders; they are fetched again when it grows. */
  readonly ruled: number;
  /** The same for threads. */
  readonly spoken: number;
  readonly commandLine: string;
  readonly calls: ReadonlyMap<string, TrackedCall>;
  readonly approvals: ReadonlyMap<string, TrackedApproval>;
  /** Running terminals. */
  readonly terminals: ReadonlyMap<string, TrackedTerminal>;
}

/** Limit of finished calls and answered approvals in memory; older ones are fetched. */
const KEPT = 200;

export function modelFromState(state: State, received: number): Model {
  const calls = [...state.calls, ...state.recent].map((call) => [call.id, tracked(call, state.seq, received)] as const);
  const approvals = state.approvals.map((approval) => [approval.id, { ...approval, since: received - approval.elapsed_ms }] as const);
  const terminals = state.terminals.map((terminal) => [terminal.id, running(terminal, state, received)] as const);
  return { ...heading(state), seq: state.seq, ruled: state.seq, spoken: state.seq, skew: received - state.now, calls: new Map(calls), approvals: new Map(approvals), terminals: new Map(terminals) };
}

/** The same calls with the snapshot's other facts (version, policy). */
export function updateHeading(model: Model, state: State): Model {
  return { ...model, ...heading(state), started: model.started };
}

/** The model after these entries; null if some are missing, and a new snapshot is needed. */
export function advance(model: Model, frame: LiveEntries, received: number): Model | null {
  const fresh = frame.entries.filter((entry) => entry.seq > model.seq);
  if (fresh.length === 0) return model;
  const draft = new Draft(model, received - frame.now);
  for (const entry of fresh) if (!draft.take(entry)) return null;
  return draft.finish();
}

/** The fetched approval, with the state that the event stream has: events may be newer than the response. */
export function withFetchedFacts(known: TrackedApproval, fetched: ApprovalView): TrackedApproval {
  const { status, reason, by, edited, client_gone, since, rules } = known;
  return { ...fetched, status, reason, by, edited, client_gone, since, ...(rules ? { rules } : {}) };
}

export function isOpen(call: Pick<CallView, "status">): boolean {
  return call.status === "waiting" || call.status === "running";
}

function heading(state: State): Pick<Model, "version" | "started" | "autoApprove" | "humanInTheLoop" | "policy" | "pause" | "commandLine"> {
  return {
    version: state.version,
    started: state.started,
    autoApprove: state.auto_approve,
    humanInTheLoop: state.human_in_the_loop,
    policy: state.policy,
    pause: state.pause.since === null ? null : { since: state.pause.since, by: state.pause.by },
    commandLine: state.command_line,
  };
}

function running(terminal: TerminalView, state: State, received: number): TrackedTerminal {
  const { id, name, of, owner, call_id, asks, taken } = terminal;
  const since = received - Math.max(0, state.now - (asks?.since ?? state.now));
  return { id, name, of, owner, call_id, asks, taken, since, touched: state.seq };
}

function tracked(call: CallView, seq: number, received: number): TrackedCall {
  return { ...call, since: received - call.elapsed_ms, touched: seq };
}

/** Applies a batch of entries; maps are copied once per batch, calls once per change. */
class Draft {
  private readonly calls: Map<string, TrackedCall>;
  private readonly approvals: Map<string, TrackedApproval>;
  private readonly terminals: Map<string, TrackedTerminal>;
  private seq: number;
  private ruled: number;
  private spoken: number;
  private started: Restart;
  private pause: Model["pause"];
  private readonly model: Model;
  private readonly skew: number;

  constructor(model: Model, skew: number) {
    this.model = model;
    this.skew = skew;
    this.calls = new Map(model.calls);
    this.approvals = new Map(model.approvals);
    this.terminals = new Map(model.terminals);
    this.seq = model.seq;
    this.ruled = model.ruled;
    this.spoken = model.spoken;
    this.started = model.started;
    this.pause = model.pause;
  }

  /** False if an entry before this one is missing. */
  take(entry: Entry): boolean {
    if (entry.seq !== this.seq + 1) return false;
    this.seq = entry.seq;
    this.apply(entry);
    return true;
  }

  finish(): Model {
    forget(this.calls, (call) => !isOpen(call));
    forget(this.approvals, (approval) => approval.status !== "open");
    const { seq, ruled, spoken, skew, started, pause, calls, approvals, terminals } = this;
    return { ...this.model, seq, ruled, spoken, skew, started, pause, calls, approvals, terminals };
  }

  private apply({ seq, at, event }: Entry): void {
    switch (event.kind) {
      case "DaemonStarted": {
        const { kind: _, version: __, ...found } = event;
        this.started = { seq, at, ...found };
        return;
      }
      case "CallOpened":
        this.calls.set(event.call, callFromEvent(event, seq, at, this.skew));
        return;
      case "ApprovalOpened":
        return this.ask(event, at);
      case "ApprovalAnswered": {
        const status = event.answer === "allow" ? "allowed" : "denied";
        this.answer(event, { status, reason: event.reason, by: event.by, edited: isEdited(event), rules: event.rules ?? [] });
        this.change(event.call, { answered_at: at, answered_by: event.by, edited: isEdited(event) });
        if (status === "denied") this.refuse(event, at); // it will not run; CallSettled follows
        return;
      }
      case "ApprovalWithdrawn":
        return this.answer(event, { status: "withdrawn", reason: event.why });
      case "ApprovalExpired":
        return this.answer(event, { status: "expired" });
      case "RuleAdded":
      case "RuleRemoved":
      case "RuleDisabled":
      case "RuleEnabled":
      case "RulesOrdered":
      case "FolderTrusted":
      case "FolderDistrusted":
      case "PolicyAccepted":
        this.ruled = seq;
        return;
      case "AgentsPaused":
        this.pause = { since: at, by: event.by };
        return;
      case "AgentsResumed":
        this.pause = null;
        return;
      case "ThreadOpened":
      case "ThreadRenamed":
      case "ThreadDeleted":
      case "MessageOpened":
      case "MessageEnded":
      case "PromptSent":
      case "PromptDropped":
      case "OperationOpened":
      case "OperationEnded":
        this.spoken = seq;
        return;
      case "FilesRestored":
        for (const call of event.calls) this.change(call, {});
        return;
      case "CallStarted":
        return this.start(event, at);
      case "CallHandedBack":
        return this.change(event.call, { handed_back: true });
      case "CallClientGone":
        return this.change(event.call, { client_gone: true });
      case "CallClientBack":
        return this.change(event.call, { client_gone: false });
      case "CallSettled":
        return this.settle(event, at);
      case "CallStopped":
        return this.change(event.call, { stopped: event.receipt.stopped });
      case "TerminalOpened":
        if (event.call) this.change(event.call, { terminal_id: event.terminal });
        this.terminals.set(event.terminal, terminalFromEvent(event, seq, at + this.skew));
        return;
      case "TerminalEnded":
        this.terminals.delete(event.terminal);
        return this.touchCallsOf(event.terminal);
      case "TerminalAsked":
        return this.wait(event, at);
      case "TerminalWentOn":
        return this.alter(event.terminal, { asks: null });
      case "TerminalTaken":
        return this.alter(event.terminal, { taken: { by: event.by, holds: event.holds } });
      case "TerminalReleased":
        return this.alter(event.terminal, { taken: null });
      case "TerminalTyped":
        return this.alter(event.terminal, {});
    }
  }

  private change(id: string, facts: Partial<TrackedCall>): void {
    const call = this.calls.get(id);
    if (call) this.calls.set(id, { ...call, ...facts, touched: this.seq });
  }

  private start({ call: id, allowed_by, title }: EventOf<"CallStarted">, at: number): void {
    const call = this.calls.get(id);
    if (call) this.change(id, { title: title || call.title, allowed_by, ran_at: at, waited_ms: waitedMs({ ...call, ran_at: at }, at) });
  }

  private ask(event: EventOf<"ApprovalOpened">, at: number): void {
    const asked = this.calls.get(event.call)?.ran_at == null ? { asked_at: at } : { reviewed_at: at };
    this.change(event.call, { status: "waiting", approval_id: event.approval, ...asked, answered_at: null, answered_by: null, edited: false });
    const call = this.calls.get(event.call);
    if (call) this.approvals.set(event.approval, approvalFromEvent(event, call, at, at + this.skew));
  }

  private answer(event: { approval: string; call: string }, facts: Partial<TrackedApproval>): void {
    const approval = this.approvals.get(event.approval);
    if (approval) this.approvals.set(event.approval, { ...approval, ...facts });
    const call = this.calls.get(event.call);
    this.change(event.call, call?.status === "waiting" ? { status: "running" } : {});
  }

  private refuse(event: EventOf<"ApprovalAnswered">, at: number): void {
    const call = this.calls.get(event.call);
    if (call && isOpen(call)) this.change(event.call, { status: "denied", message: event.reason, elapsed_ms: Math.max(0, at - call.started_at), ...endTimes(call, at) });
  }

  private settle(event: EventOf<"CallSettled">, at: number): void {
    const call = this.calls.get(event.call);
    if (!call) return;
    this.change(event.call, {
      status: event.ending,
      by: event.by,
      message: event.message,
      stopped: event.receipt.stopped,
      elapsed_ms: Math.max(0, at - call.started_at),
      ...endTimes(call, at),
      ...exitOf(call, event.result?.data ?? {}),
    });
  }

  private alter(id: string, facts: Partial<TrackedTerminal>): void {
    const terminal = this.terminals.get(id);
    if (terminal) this.terminals.set(id, { ...terminal, ...facts, touched: this.seq });
  }

  private wait(event: EventOf<"TerminalAsked">, at: number): void {
    const asks: Asks = { prompt: event.prompt, sure: event.sure, secret: event.secret, since: at };
    this.alter(event.terminal, { asks, since: at + this.skew });
  }

  private touchCallsOf(terminal: string): void {
    for (const call of this.calls.values()) if (call.terminal_id === terminal) this.change(call.id, {});
  }
}

function endTimes(call: TrackedCall, at: number): Pick<TrackedCall, "ended_at" | "waited_ms" | "ran_ms"> {
  return { ended_at: at, waited_ms: waitedMs(call, at), ran_ms: spanMs(ranSpan(call, at)) };
}

/** Other tools report the exit code of a terminal they look at, which is not how their own call ended. */
const COMMAND_TOOLS = ["execute_command", "client_work"];

function exitOf({ tool }: TrackedCall, { exit_code, signal }: Json): Pick<TrackedCall, "exit_code" | "signal"> {
  const runs = COMMAND_TOOLS.includes(tool);
  return { exit_code: runs && typeof exit_code === "number" ? exit_code : null, signal: runs && typeof signal === "string" ? signal : null };
}

function isEdited({ input, content }: EventOf<"ApprovalAnswered">): boolean {
  return (input ?? null) !== null || (content ?? null) !== null;
}

/** Drops the oldest finished entries beyond the limit; insertion order is age. */
function forget<T>(map: Map<string, T>, over: (value: T) => boolean): void {
  if (map.size <= KEPT) return;
  const ids = [...map].filter(([, value]) => over(value)).map(([id]) => id);
  for (const id of ids.slice(0, Math.max(0, ids.length - KEPT))) map.delete(id);
}
