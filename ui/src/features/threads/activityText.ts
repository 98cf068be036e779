/** Texts about activities; pure. Their structure is in threads/activityTree.ts. */
import type { Activity, Message } from "../../api/types.ts";
import { callStatus, type StatusLabel } from "../../lib/callText.ts";
import { pluralize } from "../../lib/duration.ts";
import type { KnownCall } from "../../state/model.ts";
import { type Activities, type ActivityNode, buildTree, innerNodes, isRunning, runningLeaves } from "./activityTree.ts";
import { callData } from "./callPart.ts";

/** Finds the tracked call behind an activity. */
export type FindCall = (activity: Activity) => Pick<KnownCall, "status"> | undefined;

/** The current activity, as one line. */
export interface CurrentActivity {
  /** The current step. */
  readonly step: string;
  readonly words: string;
  /** Its subject, if it is a single thing. */
  readonly about: string;
  /** Calls that wait for the person. */
  readonly waits: number;
  /** Start of the oldest running activity, in daemon time; null if none runs. */
  readonly since: number | null;
}

export function currentActivity(activities: Activities, linked: FindCall): CurrentActivity {
  const top = buildTree(activities);
  const at = runningLeaves(top);
  const step = innerNodes(top).findLast(({ activity }) => isRunning(activity) && activity.sort === "step")?.activity.title ?? "";
  const calls = at.filter(({ sort }) => sort === "call");
  const [only] = at;
  return {
    step,
    words: busyWith(activities, at) || (at.length && !step ? "at work" : ""),
    about: at.length === 1 && only?.sort === "call" ? only.title : "",
    waits: calls.filter((one) => linked(one)?.status === "waiting").length,
    since: at.length ? Math.min(...at.map(({ started_at }) => started_at)) : null,
  };
}

function busyWith(activities: Activities, at: readonly Activity[]): string {
  const open = [...activities.values()].filter(isRunning);
  const some = (sort: Activity["sort"], of = at): number => of.filter((one) => one.sort === sort).length;
  const compacting = some("compaction", open) > 0;
  const said = [
    compacting ? "compacting" : some("model") ? "model asked" : "",
    some("thinking") ? "thinking" : "",
    some("call") ? pluralize(some("call"), "call") : "",
    some("agent", open) ? pluralize(some("agent", open), "sub-agent") : "",
  ];
  return said.filter(Boolean).join(" · ");
}

/** A summary: `3 steps · 4 calls`. */
export function summaryText(activities: Activities): string {
  const all = [...activities.values()];
  const some = (sort: Activity["sort"], word: string): string[] => {
    const count = all.filter((one) => one.sort === sort).length;
    return count ? [pluralize(count, word)] : [];
  };
  const steps = innerNodes(buildTree(activities)).filter(({ activity }) => activity.sort === "step").length;
  const said = [...(steps ? [pluralize(steps, "step")] : []), ...some("call", "call"), ...some("agent", "sub-agent"), ...some("compaction", "compaction")];
  return said.join(" · ");
}

/** From the first start to the last end. */
export function activityDuration(activities: Activities): number {
  const all = [...activities.values()];
  if (all.length === 0) return 0;
  return Math.max(...all.map(({ started_at, ended_at }) => ended_at ?? started_at)) - Math.min(...all.map(({ started_at }) => started_at));
}

/** The innermost cancelled activities: cancelling a step also cancels its children. */
export function cancelledActivities(top: readonly ActivityNode[]): Activity[] {
  return top.flatMap(({ activity, below }) => {
    const deeper = cancelledActivities(below);
    return deeper.length || activity.how !== "cancelled" ? deeper : [activity];
  });
}

const HOW: Record<NonNullable<Activity["how"]>, StatusLabel> = {
  done: { sign: "done", tone: "green", word: "done" },
  failed: { sign: "failed", tone: "red", word: "failed" },
  cancelled: { sign: "cancelled", tone: "grey", word: "cancelled" },
  interrupted: { sign: "gone", tone: "violet", word: "interrupted" },
};

/** The state of an activity. A tracked call knows more about its end than the activity does. */
export function activityStatus({ how }: Activity, call: KnownCall | undefined): StatusLabel {
  if (how === null) return call?.status === "waiting" ? { sign: "needs", tone: "amber", word: "waits for you" } : { sign: "running", tone: "blue", word: "running" };
  return call && how !== "interrupted" && ["denied", "completed", "failed"].includes(call.status) ? callStatus(call) : HOW[how];
}

const CANCELS: Record<Activity["sort"], string> = {
  operation: "Stop all of it",
  step: "Stop what this step is busy with",
  model: "Close this request to the model: what it said so far is kept, and the work ends here",
  thinking: "Close this request to the model while it thinks: the work ends here",
  call: "Stop this call: the agent is told so, and goes on",
  agent: "Stop this sub-agent and all it does: the agent that started it gets its output so far, and goes on",
  compaction: "Leave the conversation as long as it is, and go on",
};

/** Tooltip of the Cancel button. */
export function cancelTitle({ sort }: Activity): string {
  return CANCELS[sort];
}

/** Tracked calls by the agent's tool call ids, from the message's parts. */
export function callLinks(message: Pick<Message, "parts"> | undefined): ReadonlyMap<string, string> {
  const links = new Map<string, string>();
  for (const part of message?.parts ?? []) {
    if (part.kind !== "call") continue;
    const { id, call } = callData(part);
    if (id && call) links.set(id, call);
  }
  return links;
}
