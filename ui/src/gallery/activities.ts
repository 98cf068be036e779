/** Fixtures: operations with activities in every state. Never loaded by the page. */
import type { Activity, Entry, Event } from "../api/types.ts";
import { type Activities, applyEntries, closeActivities, NO_ACTIVITIES } from "../features/threads/activityTree.ts";

type Sort = Activity["sort"];
type How = "done" | "failed" | "cancelled";

/** An event, and its age in milliseconds. */
type Told = readonly [ago: number, id: string, sort: Sort, parent: string | null, title: string] | readonly [ago: number, id: string, how: How, detail?: string];

const NOW = Date.now();
const OPERATION = "o1";

function isBeginning(told: Told): told is readonly [number, string, Sort, string | null, string] {
  return told.length === 5;
}

function eventOf(told: Told): Event {
  const of = { thread: "", operation: OPERATION, activity: told[1] };
  if (isBeginning(told)) return { kind: "ActivityStarted", ...of, parent: told[3], sort: told[2], title: told[4], tool_call: told[2] === "call" ? told[1] : "" };
  return { kind: "ActivityEnded", ...of, sort: "call", how: told[2] as How, by: told[2] === "cancelled" ? "a person on the page" : "", detail: told[3] ?? "" };
}

export function entryOf(told: Told, seq: number): Entry {
  return { seq, at: NOW - told[0], event: eventOf(told) };
}

function told(...facts: Told[]): Activities {
  return applyEntries(NO_ACTIVITIES, facts.map(entryOf), OPERATION);
}

const BEGINS: Told[] = [[95_000, "r", "operation", null, "Hash passwords"], [95_000, "s1", "step", "r", "Step 1"], [95_000, "m1", "model", "s1", "claude-opus-5"]];
const READ: Told[] = [[88_000, "m1", "done", "1.2k tokens"], [88_000, "c1", "call", "s1", "Read src/auth.py"], [87_980, "c2", "call", "s1", "Search for `login(`"], [87_900, "c1", "done"], [87_000, "c2", "done"], [87_000, "s1", "done"]];
const SECOND: Told[] = [[86_900, "s2", "step", "r", "Step 2"], [86_900, "m2", "model", "s2", "claude-opus-5"], [86_000, "t2", "thinking", "m2", "Thinking"]];
const CALLS: Told[] = [[80_000, "t2", "done"], [79_000, "m2", "done"], [78_900, "c3", "call", "s2", "Edit src/auth.py"], [78_900, "c4", "call", "s2", "Run `pytest -q tests/test_auth.py --maxfail=1`"], [78_900, "c5", "call", "s2", "Fetch https://argon2-cffi.readthedocs.io/en/stable/"]];

export const moments: readonly (readonly [string, Activities])[] = [
  ["model asked", told(...BEGINS)],
  ["thinking", told(...BEGINS, ...READ, ...SECOND)],
  ["three calls", told(...BEGINS, ...READ, ...SECOND, ...CALLS)],
  ["one call", told(...BEGINS, ...READ, ...SECOND, ...CALLS, [70_000, "c3", "done"], [60_000, "c5", "failed", "no network"])],
  ["compacting", told(...BEGINS, ...READ, [4000, "k", "compaction", "r", "Compacting 182k tokens"], [4000, "m9", "model", "k", "claude-opus-5"])],
  ["between two", told(...BEGINS, ...READ)],
];

/** Three levels of agents, each with its own steps. */
export const dispatching: readonly Activity[] = [
  ...told(
    ...BEGINS, ...READ, ...SECOND, [80_000, "t2", "done"], [79_000, "m2", "done"],
    [78_000, "d1", "call", "s2", "Dispatch: find every caller of login"], [78_000, "a1", "agent", "d1", "find every caller of login"],
    [78_000, "a1s1", "step", "a1", "Step 1"], [78_000, "a1m1", "model", "a1s1", "claude-opus-5"], [71_000, "a1m1", "done"],
    [71_000, "d2", "call", "a1s1", "Dispatch: look in the tests"], [71_000, "a2", "agent", "d2", "look in the tests"],
    [71_000, "a2s1", "step", "a2", "Step 1"], [71_000, "a2m1", "model", "a2s1", "claude-opus-5"], [69_000, "a2m1", "done"],
    [69_000, "d3", "call", "a2s1", "Dispatch: look in the fixtures"], [69_000, "a3", "agent", "d3", "look in the fixtures"],
    [69_000, "a3s1", "step", "a3", "Step 1"], [69_000, "a3m1", "model", "a3s1", "claude-opus-5"], [68_000, "a3m1", "done"], [68_000, "card-runs", "call", "a3s1", "Search for `login(` in tests/fixtures"],
    [70_900, "card-edit", "call", "a1s1", "Edit src/callers.py"],
  ).values(),
];

/** Cancelled during a model request and a call. */
export const done: readonly Activity[] = [
  ...closeActivities(told(...BEGINS, ...READ, ...SECOND, ...CALLS, [70_000, "c3", "done"], [60_000, "c5", "failed", "no network"], [40_000, "c4", "cancelled", "Cancelled by the person"], [40_000, "s2", "done"], [39_000, "s3", "step", "r", "Step 3"], [39_000, "m3", "model", "s3", "claude-opus-5"]), true, NOW - 31_000).values(),
];

export const hostile: Activities = told([9000, "r", "operation", null, "x"], [9000, "s", "step", "r", "Step \u202e1 <b>not bold</b>"], [9000, "c", "call", "s", `Run \`ls \u200b\` ${"a very long title that goes on ".repeat(12)}`]);

/** As many as in a long day. */
export const many: Activities = told(
  [9_000_000, "r", "operation", null, "x"],
  ...Array.from({ length: 400 }, (_, at): Told[] => [
    [8_000_000 - at * 10_000, `s${at}`, "step", "r", `Step ${at + 1}`], [8_000_000 - at * 10_000, `m${at}`, "model", `s${at}`, "claude-opus-5"], [7_999_000 - at * 10_000, `m${at}`, "done"],
    [7_999_000 - at * 10_000, `c${at}`, "call", `s${at}`, `Read src/part${at}.py`], ...(at < 399 ? ([[7_998_000 - at * 10_000, `c${at}`, "done"], [7_998_000 - at * 10_000, `s${at}`, "done"]] as Told[]) : []),
  ]).flat(),
);

/** A sequence of events, from start to end. */
export const story: readonly Told[] = [
  ...BEGINS, ...READ, ...SECOND, ...CALLS, [7000, "c3", "done"], [6000, "c4", "done"], [5000, "c5", "failed", "no network"], [5000, "s2", "done"], [4900, "s3", "step", "r", "Step 3"], [4900, "m3", "model", "s3", "claude-opus-5"],
  [1000, "m3", "done"], [1000, "s3", "done"], [1000, "r", "done"],
];

export function upTo(facts: number): Activities {
  return told(...story.slice(0, facts));
}
