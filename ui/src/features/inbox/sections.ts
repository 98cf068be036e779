/**
 * Assigns calls to sections and orders them; pure.
 *
 * While the list is frozen, rows keep their section and place, whatever happens to their calls.
 */
import type { CallView } from "../../api/types.ts";
import { needsInput } from "../../lib/terminalText.ts";
import { isOpen, type Model, type TrackedApproval, type TrackedCall, type TrackedTerminal } from "../../state/model.ts";

export interface Sections {
  /** Call ids. */
  readonly needs: readonly string[];
  readonly running: readonly string[];
  readonly recent: readonly string[];
}

export const NO_SECTIONS: Sections = { needs: [], running: [], recent: [] };

/** The rule for agents that query their own calls; the inbox, the number of open calls and the waterfall leave them out. */
const MAILBOX = "rule own record";

/** Whether an agent only asked about its own calls. */
export function isPoll({ allowed_by }: Pick<CallView, "allowed_by">): boolean {
  return allowed_by === MAILBOX;
}

export function buildSections(model: Model): Sections {
  const calls = [...model.calls.values()].filter((call) => !isPoll(call));
  const asked = openApprovals(model);
  const held = terminalsNeedingInput(model).flatMap(({ call_id }) => (call_id && model.calls.has(call_id) ? [call_id] : []));
  const needs = new Set([...asked.map((approval) => approval.call_id), ...held]);
  return {
    needs: [...needs],
    running: ids(calls.filter((call) => isOpen(call) && !needs.has(call.id)), (a, b) => a.started_at - b.started_at),
    recent: ids(calls.filter((call) => !isOpen(call) && !needs.has(call.id)), (a, b) => ended(b) - ended(a)),
  };
}

/** Calls without an outcome, but for an agent's questions about its own calls. */
export function openCalls(model: Model): TrackedCall[] {
  return [...model.calls.values()].filter((call) => isOpen(call) && !isPoll(call));
}

/** Open questions, the oldest first. */
export function openApprovals(model: Model): TrackedApproval[] {
  return [...model.approvals.values()].filter((approval) => approval.status === "open").sort((a, b) => a.asked_at - b.asked_at);
}

/** Terminals that wait for a person's input, the longest wait first. */
export function terminalsNeedingInput(model: Model): TrackedTerminal[] {
  return [...model.terminals.values()].filter(({ asks, owner }) => needsInput(asks, owner)).sort((a, b) => a.since - b.since);
}

/** The current call of a thread: the one the person selected, the first question, or the running call. */
export function currentThreadCall(model: Model, thread: string, turned: string | null): string | null {
  const open = [...model.calls.values()].filter((call) => call.caller.thread === thread && isOpen(call));
  if (open.some(({ id }) => id === turned)) return turned;
  const asked = openApprovals(model).find(({ call_id }) => open.some(({ id }) => id === call_id));
  return asked?.call_id ?? open.at(-1)?.id ?? null;
}

/**
 * The order to show while the list is frozen: every row keeps its section and place, new rows are appended, and ended
 * calls stay until it thaws.
 */
export function freezeSections(shown: Sections, wanted: Sections, known: (id: string) => boolean): Sections {
  const placed = new Set([...shown.needs, ...shown.running, ...shown.recent]);
  const join = (was: readonly string[], now: readonly string[]) => [...was.filter(known), ...now.filter((id) => !placed.has(id))];
  return {
    needs: join(shown.needs, wanted.needs),
    running: join(shown.running, wanted.running),
    recent: shown.recent.filter(known),
  };
}

/** The order to show while this call is open in the pane: it keeps its section and place, even if it has ended. */
export function pinSection(shown: Sections, wanted: Sections, pinned: string | null): Sections {
  const at = pinned === null ? -1 : shown.needs.indexOf(pinned);
  if (pinned === null || at < 0 || wanted.needs.includes(pinned)) return wanted;
  const others = (ids: readonly string[]): string[] => ids.filter((id) => id !== pinned);
  const before = new Set(shown.needs.slice(0, at));
  const place = wanted.needs.findLastIndex((id) => before.has(id)) + 1;
  return { needs: wanted.needs.toSpliced(place, 0, pinned), running: others(wanted.running), recent: others(wanted.recent) };
}

export interface SectionHeading {
  readonly count: number;
  /** Said where the section has no rows. */
  readonly note: string;
}

/** The headings count calls by their state now: in a frozen list, one of them may still have its place in another section. */
export function sectionHeadings(wanted: Sections, held: readonly Pick<TrackedTerminal, "call_id">[]): { needs: SectionHeading; running: SectionHeading } {
  const others = held.filter(({ call_id }) => !wanted.needs.includes(call_id ?? ""));
  return {
    needs: { count: wanted.needs.length + others.length, note: wanted.needs.length ? "What needs you has kept its place below." : "Nothing needs you." },
    running: { count: wanted.running.length, note: wanted.running.length ? "What runs has kept its place above." : "No call is running." },
  };
}

/** The row to focus after `gone` is resolved: the next question, else the first. */
export function nextAfter(needs: readonly string[], gone: string, open: (id: string) => boolean): string | null {
  const at = needs.indexOf(gone);
  const after = [...needs.slice(at + 1), ...needs.slice(0, Math.max(at, 0))];
  return after.find((id) => id !== gone && open(id)) ?? null;
}

function ended(call: TrackedCall): number {
  return call.started_at + call.elapsed_ms;
}

function ids(calls: TrackedCall[], by: (a: TrackedCall, b: TrackedCall) => number): string[] {
  return calls.sort(by).map((call) => call.id);
}
