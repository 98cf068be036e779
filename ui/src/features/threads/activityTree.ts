/**
 * Activities of an operation, merged from a snapshot and events, and the tree they form; pure.
 *
 * Start and end are reported once each, so that snapshot and events may arrive in any order. Fetching is in
 * threads/activities.svelte.ts, texts in threads/activityText.ts.
 */
import type { Activity, Entry, EventOf, Stop } from "../../api/types.ts";

/** By id, in the order they began. */
export type Activities = ReadonlyMap<string, Activity>;

export const NO_ACTIVITIES: Activities = new Map();

/** An activity and its children. */
export interface ActivityNode {
  readonly activity: Activity;
  readonly below: readonly ActivityNode[];
}

/** Applies events; those of other operations are skipped. */
export function applyEntries(known: Activities, entries: readonly Entry[], operation: string): Activities {
  const next = new Map(known);
  for (const { at, event } of entries) {
    if (!("operation" in event) || event.operation !== operation) continue;
    if (event.kind === "ActivityStarted") next.set(event.activity, merged(next.get(event.activity), begun(event, at)));
    if (event.kind === "ActivityEnded") end(next, event, at);
    if (event.kind === "OperationEnded") close(next, isCancelled(event), at);
  }
  return next;
}

/** Merges a snapshot of all activities. */
export function mergeSnapshot(known: Activities, all: readonly Activity[]): Activities {
  const next = new Map(all.map((one) => [one.id, merged(known.get(one.id), one)]));
  for (const [id, one] of known) if (!next.has(id)) next.set(id, one);
  return next;
}

/** Ends running activities: none outlives its operation. */
export function closeActivities(known: Activities, cancelled: boolean, at: number): Activities {
  const next = new Map(known);
  close(next, cancelled, at);
  return next;
}

/** Maximum depth; deeper nodes become siblings of their parents. */
const DEEPEST = 32;

interface Grown extends ActivityNode {
  readonly below: Grown[];
  readonly above: Grown | undefined;
  readonly depth: number;
}

export function isCancelled({ stop, cancelled_by }: { readonly stop?: Stop | null; readonly cancelled_by: string | null }): boolean {
  return stop === "cancelled" || cancelled_by !== null;
}

/** Builds the tree. A node whose parent is unknown or began later becomes a root, so that no cycle can form. */
export function buildTree(activities: Activities): readonly ActivityNode[] {
  const branches = new Map<string, Grown>();
  const top: Grown[] = [];
  for (const activity of activities.values()) {
    const named = activity.parent === null ? undefined : branches.get(activity.parent);
    const above = named?.depth === DEEPEST ? named.above : named;
    const branch: Grown = { activity, below: [], above, depth: (above?.depth ?? 0) + 1 };
    (above?.below ?? top).push(branch);
    branches.set(activity.id, branch);
  }
  return top;
}

/** The children of the operation's root; the root has no row if it is the only one. */
export function innerNodes(top: readonly ActivityNode[]): readonly ActivityNode[] {
  const [root] = top;
  return top.length === 1 && root?.activity.sort === "operation" ? root.below : top;
}

/** Replaces a call that started a sub-agent by the sub-agent, as one row. */
export function collapseAgentCall(branch: ActivityNode): ActivityNode {
  const [only] = branch.below;
  return branch.activity.sort === "call" && branch.below.length === 1 && only?.activity.sort === "agent" ? only : branch;
}

export function isRunning({ ended_at }: Activity): boolean {
  return ended_at === null;
}

/** Running activities without a running child. */
export function runningLeaves(top: readonly ActivityNode[]): Activity[] {
  return top.flatMap(({ activity, below }) => {
    const deeper = runningLeaves(below);
    return deeper.length || !isRunning(activity) ? deeper : [activity];
  });
}

function begun({ activity, parent, sort, title, tool_call }: EventOf<"ActivityStarted">, at: number): Activity {
  return { id: activity, parent, sort, title, tool_call, call: null, started_at: at, ended_at: null, how: null, by: "", detail: "" };
}

function end(next: Map<string, Activity>, { activity, how, by, detail }: EventOf<"ActivityEnded">, at: number): void {
  const one = next.get(activity);
  if (one && isRunning(one)) next.set(activity, { ...one, ended_at: at, how, by, detail });
}

function close(next: Map<string, Activity>, cancelled: boolean, at: number): void {
  const how = cancelled ? "cancelled" : "interrupted";
  for (const [id, one] of next) if (isRunning(one)) next.set(id, { ...one, ended_at: at, how });
}

/** Merges two reports of one activity: a known fact wins over an absent one. */
function merged(known: Activity | undefined, fresh: Activity): Activity {
  if (!known) return fresh;
  const over = isRunning(known) ? fresh : known;
  return { ...fresh, call: fresh.call ?? known.call, ended_at: over.ended_at, how: over.how, by: over.by, detail: over.detail };
}
