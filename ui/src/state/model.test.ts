import assert from "node:assert/strict";
import { test } from "node:test";

import type { ApprovalView, Event, EventOf, LiveEntries, State } from "../api/types.ts";
import { buildSections, freezeSections, nextAfter, openCalls, pinSection, sectionHeadings, terminalsNeedingInput } from "../features/inbox/sections.ts";
import { callStatus } from "../lib/callText.ts";
import { runningSince } from "../lib/callTimes.ts";
import { advance, type Model, modelFromState, withFetchedFacts } from "./model.ts";

const caller = { door: "stdio", client: "claude", key: "k", workspace: "/home/me/api", thread: null, operation: null } as const;
const receipt = { ended_by: "page", stopped: false, signals: [], processes_stopped: [], processes_left: [], bytes_kept: 0, files_changed: [] };

function empty(seq = 10): Model {
  const state: State = {
    seq,
    now: 50_000,
    version: "0",
    started: { seq: 1, at: 0, pid: 1, crashed: false, interrupted: 0, approvals_kept: 0, terminals_adopted: 0 },
    auto_approve: false,
    human_in_the_loop: true,
    policy: { suspended: "", known: true, changes: [], digest: "", taken: [], head_seq: seq, head_chain: "", kept_seq: null },
    pause: { since: null, by: "", won: true },
    command_line: "handrail mcp",
    calls: [],
    recent: [],
    approvals: [],
    terminals: [],
  };
  return modelFromState(state, 1000);
}

function frame(first: number, ...events: Event[]): LiveEntries {
  return { now: 60_000, entries: events.map((event, at) => ({ seq: first + at, at: 58_000 + at, event })) };
}

function opened(call: string): Event {
  return { kind: "CallOpened", call, tool: "execute_command", title: call, input: { command: call }, caller, assurance: "bound" };
}

function asked(call: string): Event {
  const preview = { kind: "command" as const, command: call, cwd: "/", program: "bash", environment: [] };
  return { kind: "ApprovalOpened", approval: `a-${call}`, call, digest: "d", claims: [], risk: "high", reasons: ["r"], why: "w", verdicts: [], preview };
}

function answered(answer: "allow" | "deny", facts: Partial<EventOf<"ApprovalAnswered">> = {}): Event {
  return { kind: "ApprovalAnswered", approval: "a-c1", call: "c1", answer, reason: "no", by: "phone", digest: "", comments: [], rules: [], request_id: "", ...facts };
}

function settled(call: string, ending: "done" | "cancelled" = "done"): Event {
  return { kind: "CallSettled", call, ending, by: "page", message: "m", result: null, receipt };
}

function then(model: Model | null, ...events: Event[]): Model {
  assert.ok(model);
  const after = advance(model, frame(model.seq + 1, ...events), 2000);
  assert.ok(after);
  return after;
}

test("an approval made from its event holds no fact that the event does not carry", () => {
  const approval = then(empty(), opened("c1"), asked("c1")).approvals.get("a-c1");
  assert.ok(approval);
  assert.equal(approval.digest, "d");
  assert.deepEqual(approval.input, { command: "c1" });
  const unknown = ["description", "risks", "reviewable", "can_edit", "why_not_edit", "trusted", "suggestions", "usual"];
  assert.deepEqual(unknown.filter((fact) => fact in approval), []);
});

test("an approval of a call whose input is not known has none", () => {
  const { input: _, ...call } = then(empty(), opened("c1")).calls.get("c1") ?? assert.fail();
  const model = { ...then(empty(), opened("c1")), calls: new Map([["c1", call]]) };
  assert.equal("input" in (then(model, asked("c1")).approvals.get("a-c1") ?? assert.fail()), false);
});

test("a fetched approval adds its facts and keeps the state that events gave", () => {
  const model = then(empty(), opened("c1"), asked("c1"), answered("deny"));
  const known = model.approvals.get("a-c1") ?? assert.fail();
  const view: ApprovalView = {
    ...known, status: "open", by: null, reason: "", input: {}, description: "Runs a command.", risks: [], reviewable: false, can_edit: false, why_not_edit: "It is a form.", trusted: false, suggestions: [], usual: null,
  };
  const merged = withFetchedFacts(known, view);
  assert.deepEqual([merged.can_edit, merged.trusted, merged.why_not_edit], [false, false, "It is a form."]);
  assert.deepEqual([merged.status, merged.by, merged.reason, merged.since], ["denied", "phone", "no", known.since]);
});

test("an agent asking after its own calls is no news, but is on record", () => {
  const started: Event = { kind: "CallStarted", call: "c1", claims: [], allowed_by: "rule own record", rules: [], files: [], title: "" };
  const model = then(empty(), opened("c1"), started);
  assert.deepEqual(buildSections(model), { needs: [], running: [], recent: [] });
  assert.equal(model.calls.get("c1")?.status, "running");
  assert.deepEqual(openCalls(then(model, opened("c2"))).map(({ id }) => id), ["c2"]);
  assert.deepEqual(buildSections(then(model, settled("c1"))).recent, []);
});

test("a call that opens is running, and its timer counts from the daemon's clock", () => {
  const model = then(empty(), opened("c1"));
  assert.equal(model.calls.get("c1")?.status, "running");
  assert.equal(model.calls.get("c1")?.since, 0); // received at 2000, when the fact was 2 s old
});

test("an approval makes its call wait and carries what the person must see", () => {
  const model = then(empty(), opened("c1"), asked("c1"));
  assert.equal(model.calls.get("c1")?.status, "waiting");
  assert.deepEqual(model.approvals.get("a-c1")?.input, { command: "c1" });
  assert.deepEqual(buildSections(model), { needs: ["c1"], running: [], recent: [] });
});

test("an answered approval is no question any more but still known", () => {
  const answer = answered("deny");
  const model = then(empty(), opened("c1"), asked("c1"), answer);
  assert.equal(model.approvals.get("a-c1")?.status, "denied");
  assert.equal(model.approvals.get("a-c1")?.by, "phone");
  assert.deepEqual(buildSections(model).needs, []);
});

test("a denied call never stands among those that run", () => {
  const answer = answered("deny");
  const model = then(empty(), opened("c1"), asked("c1"), answer);
  assert.deepEqual(buildSections(model), { needs: [], running: [], recent: ["c1"] });
});

test("an expired question is neither denied nor open", () => {
  const model = then(empty(), opened("c1"), asked("c1"), { kind: "ApprovalExpired", approval: "a-c1", call: "c1", after_ms: 600_000 });
  assert.equal(model.approvals.get("a-c1")?.status, "expired");
  assert.deepEqual(buildSections(model).needs, []);
});

test("an answer that changed the input says so", () => {
  const plain = then(empty(), opened("c1"), asked("c1"), answered("allow"));
  const edited = then(empty(), opened("c1"), asked("c1"), answered("allow", { input: { command: "ls" } }));
  assert.equal(plain.approvals.get("a-c1")?.edited, false);
  assert.equal(edited.approvals.get("a-c1")?.edited, true);
});

test("a pause is known until it ends", () => {
  const paused = then(empty(), { kind: "AgentsPaused", by: "a person on the page" });
  assert.deepEqual(paused.pause, { since: 58_000, by: "a person on the page" });
  assert.deepEqual(then(paused, opened("c1")).pause, paused.pause);
  assert.equal(then(paused, { kind: "AgentsResumed", by: "a person" }).pause, null);
});

test("a fact about rules or folders is noticed, and no other", () => {
  const before = then(empty(), opened("c1"));
  assert.equal(before.ruled, 10);
  const after = then(before, { kind: "FolderTrusted", folder: "/home/me/api", config: null, by: "page" });
  assert.equal(after.ruled, 12);
  assert.equal(then(after, { kind: "RuleRemoved", rule: "r1", by: "page" }).ruled, 13);
});

test("a call whose files were put back is looked at again", () => {
  const model = then(empty(), opened("c1"), settled("c1"));
  const undone = then(model, { kind: "FilesRestored", undo: "u1", calls: ["c1"], files: [], by: "page" });
  assert.ok((undone.calls.get("c1")?.touched ?? 0) > (model.calls.get("c1")?.touched ?? 0));
});

test("a settled call goes to recent, and says so when its work really ends", () => {
  const model = then(empty(), opened("c1"), settled("c1", "cancelled"));
  assert.deepEqual(buildSections(model).recent, ["c1"]);
  assert.equal(model.calls.get("c1")?.stopped, false);
  const stopped = then(model, { kind: "CallStopped", call: "c1", receipt: { ...receipt, stopped: true } });
  assert.equal(stopped.calls.get("c1")?.stopped, true);
});

test("calls no entry speaks of keep their identity, so that their rows are not drawn again", () => {
  const model = then(empty(), opened("c1"), opened("c2"));
  const after = then(model, settled("c2"));
  assert.equal(after.calls.get("c1"), model.calls.get("c1"));
  assert.notEqual(after.calls.get("c2"), model.calls.get("c2"));
});

test("entries already known change nothing", () => {
  const model = then(empty(), opened("c1"));
  assert.equal(advance(model, frame(11, opened("c1")), 3000), model);
});

test("a missing entry asks for a new snapshot", () => {
  assert.equal(advance(empty(), frame(12, opened("c1")), 2000), null);
});

test("an event this page does not know is passed over", () => {
  const strange = { kind: "SomethingNew" } as unknown as Event;
  assert.equal(then(empty(), strange, opened("c1")).seq, 12);
});

test("a daemon that starts anew is noticed", () => {
  const started: Event = { kind: "DaemonStarted", version: "0", pid: 7, crashed: true, interrupted: 3, approvals_kept: 2, terminals_adopted: 4 };
  const model = then(empty(), started);
  assert.deepEqual(model.started, { seq: 11, at: 58_000, pid: 7, crashed: true, interrupted: 3, approvals_kept: 2, terminals_adopted: 4 });
});

test("what is over is forgotten in the end, what is open never", () => {
  let model = then(empty(), opened("stays"));
  for (let at = 0; at < 300; at++) model = then(model, opened(`c${at}`), settled(`c${at}`));
  assert.equal(model.calls.size, 201);
  assert.ok(model.calls.has("stays"));
});

test("a frozen list keeps every row in its place and lets new ones join at the end", () => {
  const shown = { needs: ["a", "b"], running: ["r"], recent: ["x"] };
  const wanted = { needs: ["n", "b"], running: ["a", "s"], recent: ["r", "y", "x"] };
  assert.deepEqual(freezeSections(shown, wanted, () => true), { needs: ["a", "b", "n"], running: ["r", "s"], recent: ["x"] });
});

test("a heading counts what is so now, and a section without rows says why, also in a frozen list", () => {
  const asking = then(empty(), opened("c1"), asked("c1"));
  const [before, after] = [buildSections(asking), buildSections(then(asking, answered("allow"), started("c1")))];
  const shown = freezeSections(before, after, () => true);
  assert.deepEqual(shown, { needs: ["c1"], running: [], recent: [] });
  assert.deepEqual(sectionHeadings(after, []), { needs: { count: 0, note: "Nothing needs you." }, running: { count: 1, note: "What runs has kept its place above." } });
  assert.deepEqual(sectionHeadings(before, [{ call_id: "c1" }, { call_id: null }]), { needs: { count: 2, note: "What needs you has kept its place below." }, running: { count: 0, note: "No call is running." } });
});

test("when a question is answered the next one after it follows, then the first", () => {
  assert.equal(nextAfter(["a", "b", "c"], "b", () => true), "c");
  assert.equal(nextAfter(["a", "b", "c"], "c", () => true), "a");
  assert.equal(nextAfter(["a", "b", "c"], "a", (id) => id === "c"), "c");
  assert.equal(nextAfter(["a"], "a", () => true), null);
});

const owner = { person: false, name: "claude", workspace: null };

function begun(terminal: string, call: string | null): Event {
  return { kind: "TerminalOpened", terminal, call, name: terminal, cwd: "/", pid: 1, of: call ? "command" : "tracked", owner, argv: [], cols: 80, rows: 24, nonce: "" };
}

function waits(terminal: string, sure: "certain" | "likely" = "certain", secret = false): Event {
  return { kind: "TerminalAsked", terminal, prompt: "Name? ", sure, secret };
}

test("a call whose terminal surely waits for input needs the person until it goes on", () => {
  const model = then(empty(), opened("c1"), begun("t1", "c1"), waits("t1"));
  assert.deepEqual(buildSections(model), { needs: ["c1"], running: [], recent: [] });
  assert.equal(terminalsNeedingInput(model)[0]?.asks?.prompt, "Name? ");
  const on = then(model, { kind: "TerminalWentOn", terminal: "t1" });
  assert.deepEqual(buildSections(on), { needs: [], running: ["c1"], recent: [] });
});

test("a wait that is only likely is shown but calls nobody, unless it is a secret's", () => {
  const model = then(empty(), opened("c1"), begun("t1", "c1"), waits("t1", "likely"));
  assert.deepEqual(buildSections(model).needs, []);
  assert.ok(model.terminals.get("t1")?.asks);
  assert.deepEqual(buildSections(then(model, waits("t1", "likely", true))).needs, ["c1"]);
});

test("a call that was completed and whose terminal asks stands among what needs the person, once", () => {
  const model = then(empty(), opened("c1"), begun("t1", "c1"), settled("c1"), waits("t1"));
  assert.deepEqual(buildSections(model), { needs: ["c1"], running: [], recent: [] });
});

test("a terminal that ended is no longer among those that run, and asks nobody", () => {
  const model = then(empty(), begun("t1", null), waits("t1"), { kind: "TerminalTaken", terminal: "t1", by: "page", holds: true });
  assert.deepEqual(model.terminals.get("t1")?.taken, { by: "page", holds: true });
  const ended = then(model, { kind: "TerminalEnded", terminal: "t1", exit_code: 0, signal: null, bytes: 1, lost: false });
  assert.equal(ended.terminals.size, 0);
  assert.deepEqual(terminalsNeedingInput(ended), []);
});

function started(call: string, allowed_by = `approval a-${call}`): Event {
  return { kind: "CallStarted", call, claims: [], allowed_by, rules: [], files: [], title: "" };
}

/** The model after events at these times. */
function at(model: Model, ...facts: readonly (readonly [number, Event])[]): Model {
  const entries = facts.map(([when, event], n) => ({ seq: model.seq + 1 + n, at: when, event }));
  return advance(model, { now: 60_000, entries }, 2000) ?? assert.fail();
}

test("waiting for an answer and running are counted apart", () => {
  const asking = at(empty(), [1000, opened("c1")], [1010, asked("c1")]);
  assert.deepEqual([asking.calls.get("c1")?.asked_at, asking.calls.get("c1")?.ran_at], [1010, null]);
  const running = at(asking, [110_000, answered("allow")], [110_010, started("c1")]);
  const call = running.calls.get("c1") ?? assert.fail();
  assert.deepEqual([call.answered_at, call.answered_by, call.ran_at, call.waited_ms], [110_000, "phone", 110_010, 109_010]);
  assert.equal(runningSince(call), call.since + 109_010);
  const over = at(running, [110_110, settled("c1")]).calls.get("c1") ?? assert.fail();
  assert.deepEqual([over.ended_at, over.waited_ms, over.ran_ms], [110_110, 109_010, 100]);
});

test("the review of a result is waiting, whether or not the call was asked about", () => {
  const asks = (approval: string): Event => ({ ...asked("c1"), approval }) as Event;
  const reviewing = at(empty(), [1000, opened("c1")], [1010, asks("a1")], [3000, answered("allow")], [3000, started("c1")], [3100, asks("a2")]);
  assert.deepEqual([reviewing.calls.get("c1")?.asked_at, reviewing.calls.get("c1")?.reviewed_at], [1010, 3100]);
  const over = at(reviewing, [9100, answered("allow")], [9110, settled("c1")]).calls.get("c1") ?? assert.fail();
  assert.deepEqual([over.waited_ms, over.ran_ms], [2000 + 6000, 100]);
  const unasked = at(empty(), [1000, opened("c1")], [1005, started("c1", "rule r1")], [1105, asks("a2")], [5105, settled("c1")]).calls.get("c1") ?? assert.fail();
  assert.deepEqual([unasked.asked_at, unasked.waited_ms, unasked.ran_ms], [null, 4000, 100]);
});

test("a call that a person edited has the title of what runs", () => {
  const edited = at(empty(), [1000, opened("c1")], [1010, asked("c1")], [3000, answered("allow")], [3000, { ...started("c1"), title: "Write b.txt" } as Event]);
  assert.equal(edited.calls.get("c1")?.title, "Write b.txt");
});

test("a call that was denied has waited and never run", () => {
  const call = at(empty(), [1000, opened("c1")], [1010, asked("c1")], [5000, answered("deny")]).calls.get("c1") ?? assert.fail();
  assert.deepEqual([call.ran_at, call.ran_ms, call.waited_ms, call.ended_at], [null, 0, 4000, 5000]);
});

test("a call that no one was asked about has not waited", () => {
  const call = at(empty(), [1000, opened("c1")], [1005, started("c1", "rule r1")], [1105, settled("c1")]).calls.get("c1") ?? assert.fail();
  assert.deepEqual([call.waited_ms, call.ran_ms], [0, 100]);
});

test("a command that exits with non-zero is not shown as done", () => {
  const ended = (data: Record<string, unknown>): Event => ({ ...settled("c1"), result: { text: "", data } }) as Event;
  const label = (data: Record<string, unknown>) => callStatus(then(empty(), opened("c1"), started("c1"), ended(data)).calls.get("c1") ?? assert.fail());
  assert.deepEqual(label({ exit_code: 1 }), { sign: "failed", tone: "red", word: "exit 1" });
  assert.deepEqual(label({ exit_code: null, signal: "SIGKILL" }), { sign: "failed", tone: "red", word: "SIGKILL" });
  assert.deepEqual(label({ exit_code: 0 }), { sign: "done", tone: "green", word: "done" });
});

test("the exit code of a terminal that a call only looks at is not its own", () => {
  const looks: Event = { kind: "CallOpened", call: "c1", tool: "get_terminal_buffer", title: "Read", input: {}, caller, assurance: "bound" };
  const ended = { ...settled("c1"), result: { text: "", data: { exit_code: 1 } } } as Event;
  assert.equal(callStatus(then(empty(), looks, started("c1"), ended).calls.get("c1") ?? assert.fail()).word, "done");
});

test("a call that has ended never says that it waits for input", () => {
  const asks = { prompt: "(END)", sure: "likely" as const, secret: false, since: 0 };
  const running = then(empty(), opened("c1"), started("c1"));
  assert.equal(callStatus(running.calls.get("c1") ?? assert.fail(), asks).sign, "needs");
  const over = then(running, { ...settled("c1"), ending: "interrupted" } as Event);
  assert.deepEqual(callStatus(over.calls.get("c1") ?? assert.fail(), asks), { sign: "gone", tone: "violet", word: "interrupted" });
});

test("the open row keeps its place when its call has ended", () => {
  const shown = { needs: ["a", "b", "c"], running: ["r"], recent: ["z"] };
  const wanted = { needs: ["a", "c", "d"], running: ["r"], recent: ["b", "z"] };
  assert.deepEqual(pinSection(shown, wanted, "b"), { needs: ["a", "b", "c", "d"], running: ["r"], recent: ["z"] });
  assert.deepEqual(pinSection(shown, wanted, "a"), wanted);
  assert.deepEqual(pinSection(shown, wanted, "z"), wanted);
  assert.deepEqual(pinSection(shown, wanted, null), wanted);
});
