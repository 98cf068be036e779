import assert from "node:assert/strict";
import { test } from "node:test";

import type { Activity, CallView, Entry, Event, Part } from "../../api/types.ts";
import { activityDuration, activityStatus, callLinks, cancelledActivities, currentActivity, summaryText } from "./activityText.ts";
import { type Activities, applyEntries, buildTree, closeActivities, collapseAgentCall, innerNodes, mergeSnapshot, NO_ACTIVITIES, runningLeaves } from "./activityTree.ts";

let clock = 0;

function entry(event: Event): Entry {
  clock += 10;
  return { seq: clock, at: clock, event };
}

function began(activity: string, parent: string | null, sort: Activity["sort"], title = activity, tool_call = ""): Event {
  return { kind: "ActivityStarted", thread: "h1", operation: "o1", activity, parent, sort, title, tool_call };
}

function over(activity: string, how: "done" | "failed" | "cancelled" = "done", detail = ""): Event {
  return { kind: "ActivityEnded", thread: "h1", operation: "o1", activity, sort: "call", how, by: "", detail };
}

function after(known: Activities, ...events: Event[]): Activities {
  return applyEntries(known, events.map(entry), "o1");
}

const none = (): undefined => undefined;
const asked = after(NO_ACTIVITIES, began("r", null, "operation", "Hello"), began("s1", "r", "step", "Step 1"), began("m1", "s1", "model"));
const calling = after(asked, over("m1"), began("c1", "s1", "call", "Run `pytest -q`", "tc1"), began("c2", "s1", "call", "Edit a.py", "tc2"));

test("a model request, what it thinks and its calls are each told while they go on, and not after", () => {
  assert.deepEqual([currentActivity(asked, none).step, currentActivity(asked, none).words], ["Step 1", "model asked"]);
  const thinks = after(asked, began("t1", "m1", "thinking"));
  assert.equal(currentActivity(thinks, none).words, "thinking");
  assert.equal(currentActivity(calling, none).words, "2 calls");
  const one = after(calling, over("c1"));
  assert.deepEqual([currentActivity(one, none).words, currentActivity(one, none).about], ["1 call", "Edit a.py"]);
  const idle = after(one, over("c2"), over("s1"), over("r"));
  assert.deepEqual(currentActivity(idle, none), { step: "", words: "", about: "", waits: 0, since: null });
});

test("how long it takes counts from the oldest of what goes on", () => {
  const since = (id: string): number | undefined => calling.get(id)?.started_at;
  assert.equal(currentActivity(calling, none).since, since("c1"));
  assert.equal(currentActivity(after(calling, over("c1")), none).since, since("c2"));
});

test("a call that waits for the person is said, among those that run", () => {
  const linked = ({ id }: Activity): Pick<CallView, "status"> => ({ status: id === "c2" ? "waiting" : "running" });
  assert.equal(currentActivity(calling, linked).waits, 1);
});

test("a sub-agent's own work is told as its work, and the step stays the root's", () => {
  const deep = after(calling, over("c1"), began("a1", "c2", "agent", "Look for callers"), began("s2", "a1", "step", "Step 1 of it"), began("m2", "s2", "model"));
  assert.deepEqual([currentActivity(deep, none).step, currentActivity(deep, none).words], ["Step 1", "model asked · 1 sub-agent"]);
});

test("compaction is told, not the request to the model that it makes", () => {
  const sums = after(asked, over("m1"), began("k", "s1", "compaction"), began("m2", "k", "model"));
  assert.equal(currentActivity(sums, none).words, "compacting");
});

test("a snapshot and facts meet in any order, and what ended stays ended", () => {
  const snapshot = [...asked.values()].map((one) => ({ ...one, call: one.id === "m1" ? "c7" : null }));
  const first = mergeSnapshot(after(asked, over("m1"), began("c1", "s1", "call")), snapshot);
  assert.equal(first.get("m1")?.how, "done");
  assert.equal(first.get("m1")?.call, "c7");
  assert.deepEqual([...first.keys()], ["r", "s1", "m1", "c1"]);
  const twice = after(mergeSnapshot(NO_ACTIVITIES, [...after(asked, over("m1", "failed", "no")).values()]), began("m1", "s1", "model"), over("m1"));
  assert.deepEqual([twice.get("m1")?.how, twice.get("m1")?.detail], ["failed", "no"]);
});

test("with its operation all of it is over, however that ended", () => {
  const ended = (stop: "cancelled" | "interrupted"): Event => ({ kind: "OperationEnded", operation: "o1", cancelled_by: null, cancelled_calls: [], cancelled_activities: [], stop, error: "" });
  assert.deepEqual([...after(calling, ended("cancelled")).values()].map(({ how }) => how), ["cancelled", "cancelled", "done", "cancelled", "cancelled"]);
  assert.equal(after(calling, ended("interrupted")).get("c1")?.how, "interrupted");
  assert.deepEqual(runningLeaves(buildTree(closeActivities(calling, true, 99))), []);
});

test("another operation's facts change nothing", () => {
  assert.equal(applyEntries(NO_ACTIVITIES, [entry({ kind: "ActivityStarted", thread: "h1", operation: "o2", activity: "x", parent: null, sort: "step", title: "x", tool_call: "" })], "o1").size, 0);
});

test("those below whom nobody stands make no circle, and none is lost", () => {
  const odd = after(NO_ACTIVITIES, began("a", "b", "step"), began("b", "a", "step"), began("c", "nobody", "call"), began("d", "d", "call"));
  assert.deepEqual(buildTree(odd).map(({ activity, below }) => [activity.id, below.map((one) => one.activity.id)]), [["a", ["b"]], ["c", []], ["d", []]]);
});

test("however deep somebody claims to be, the tree stays one that can be drawn", () => {
  const deep = after(NO_ACTIVITIES, ...Array.from({ length: 20_000 }, (_, at) => began(`n${at}`, at ? `n${at - 1}` : null, "agent")));
  const depth = (top: ReturnType<typeof buildTree>): number => Math.max(0, ...top.map(({ below }) => 1 + depth(below)));
  const top = buildTree(deep);
  assert.equal(depth(top), 32);
  assert.equal(runningLeaves(top).length, 20_000 - 31);
});

test("the operation itself is no line of its own", () => {
  assert.deepEqual(innerNodes(buildTree(calling)).map(({ activity }) => activity.id), ["s1"]);
  assert.deepEqual(innerNodes(buildTree(after(calling, began("x", null, "step")))).map(({ activity }) => activity.id), ["r", "x"]);
});

test("what there was is counted, and how long it took", () => {
  const done = after(calling, over("c1"), over("c2"), over("s1"), began("s2", "r", "step", "Step 2"), began("m2", "s2", "model"), over("m2"), over("s2"), over("r"));
  assert.equal(summaryText(done), "2 steps · 2 calls");
  assert.equal(activityDuration(done), (done.get("r")?.ended_at ?? 0) - (done.get("r")?.started_at ?? 0));
});

test("what was cut off is told at its innermost, once", () => {
  const cut = after(calling, over("c1"), over("c2", "cancelled"), over("s1", "cancelled"), over("r", "cancelled"));
  assert.deepEqual(cancelledActivities(buildTree(cut)).map(({ id }) => id), ["c2"]);
});

test("an activity that is our call stands as the call does: it waits, or was denied", () => {
  const call = (status: CallView["status"]): CallView => ({ status, message: "", allowed_by: null, by: "page", stopped: true }) as unknown as CallView;
  const one = calling.get("c1") as Activity;
  assert.equal(activityStatus(one, call("waiting")).word, "waits for you");
  assert.equal(activityStatus(one, undefined).word, "running");
  assert.equal(activityStatus({ ...one, ended_at: 1, how: "done" }, call("denied")).word, "denied");
  assert.equal(activityStatus({ ...one, ended_at: 1, how: "cancelled" }, call("cancelled")).word, "cancelled");
});

test("our calls are found by the ids that the agent has for them", () => {
  const part = (data: Part["data"]): Part => ({ n: 0, kind: "call", text: "", data });
  assert.deepEqual([...callLinks({ parts: [part({ id: "tc1", call: "c9" }), part({ id: "tc2", call: null }), { n: 1, kind: "text", text: "", data: {} }] })], [["tc1", "c9"]]);
  assert.equal(callLinks(undefined).size, 0);
});

test("an agent that was sent and the call that sent it are one line", () => {
  const [step] = innerNodes(buildTree(after(calling, began("a1", "c2", "agent"))));
  assert.deepEqual(step?.below.map(collapseAgentCall).map(({ activity }) => activity.id), ["m1", "c1", "a1"]);
});
