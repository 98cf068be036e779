import assert from "node:assert/strict";
import { test } from "node:test";

import type { ThreadView } from "../../api/types.ts";
import { formatUnifiedDiff } from "../../lib/formatDiff.ts";
import type { Model, TrackedApproval, TrackedCall } from "../../state/model.ts";
import { formFields, formValues } from "../approvals/form.ts";
import { currentThreadCall } from "../inbox/sections.ts";
import { agentCallStatus, callData, formatJson, parsePlan } from "./callPart.ts";
import { agentSettings, askingText, canSteer, commandPrefix, mentionPrefix, contextUsage, groupThreads, highlightParts, isUntouched, mentions, slashCommands, steeredMessages, threadStatus, tokensText, whileWorking, whileWorkingText } from "./threadText.ts";

function thread(id: string, facts: Partial<ThreadView> = {}): ThreadView {
  return { id, title: id, workspace: "/w", agent: "demo", created_at: 0, updated_at: 0, messages: 0, operation: null, queued: 0, forked_from: null, stop: null, ...facts };
}

test("only the thread of the first start counts as untouched, while nobody has written in it", () => {
  const first = { title: "Default", workspace: null, messages: 0 };
  assert.equal(isUntouched(first), true);
  assert.equal(isUntouched({ ...first, messages: 1 }), false);
  assert.equal(isUntouched({ ...first, workspace: "/w" }), false);
  assert.equal(isUntouched({ ...first, title: "Mine" }), false);
});

test("threads stand by their folder, the newest folder first", () => {
  const groups = groupThreads([thread("a"), thread("b", { workspace: "/x/notes" }), thread("c"), thread("d", { workspace: null })]);
  assert.deepEqual(groups.map(({ name, threads }) => [name, threads.map(({ id }) => id)]), [["w", ["a", "c"]], ["notes", ["b"]], ["no folder", ["d"]]]);
});

test("what needs a person is said before what runs, and what runs before what waits", () => {
  const busy = thread("a", { operation: "o1", queued: 2, stop: "cancelled" });
  assert.equal(threadStatus(busy, true).word, "needs you");
  assert.equal(threadStatus(busy, false).word, "running");
  assert.equal(threadStatus({ ...busy, operation: null }, false).word, "2 queued");
  assert.equal(threadStatus({ ...busy, operation: null, queued: 0 }, false).word, "cancelled");
  assert.equal(threadStatus(thread("a", { stop: "end_turn" }), false).word, "");
});

test("an agent that acts without asking says so, and names the mode that asks", () => {
  const better = { setting: "mode", id: "", value: "default", name: "Default" };
  const nobody = askingText({ asking: { asks: "nobody", mode: "Bypass", switch: better } }, "claude");
  assert.equal(nobody?.word, "asks nobody");
  assert.equal(nobody?.sentence, "In its mode “Bypass”, claude acts without asking. What it reports is listed in Calls as unasked.");
  assert.deepEqual(nobody?.switch, better);
  assert.equal(askingText({ asking: { asks: "commands", mode: "Edits", switch: null } }, "claude")?.switch, null);
  assert.equal(askingText({ asking: { asks: "everything", mode: "Default", switch: null } }, "claude"), null);
  assert.equal(askingText({ asking: {} }, "claude"), null);
  assert.equal(askingText({}, "claude"), null);
});

test("an agent's settings are read once, the mode among its options or by itself", () => {
  const modes = { current: "code", modes: [{ id: "ask", name: "Ask", description: "" }, { id: "code", name: "", description: "" }] };
  const model = { id: "model", name: "Model", description: "", category: "model", type: "select", value: "large", choices: [{ value: "large", name: "Large", description: "", group: "G" }] };
  const web = { id: "web", name: "Web", description: "", category: "", type: "boolean", value: false, choices: [] };
  assert.deepEqual(agentSettings({ modes, options: { options: [model, web] } }).map(({ setting, id, value }) => [setting, id, value]), [["mode", "", "code"], ["option", "model", "large"], ["option", "web", false]]);
  assert.deepEqual(agentSettings({ modes, options: { options: [{ ...model, id: "m", category: "mode" }] } }).map(({ id }) => id), ["m"]);
  assert.deepEqual(agentSettings({}), []);
});

test("slash commands are offered while the first word is being typed, and not after it", () => {
  assert.deepEqual(slashCommands({ commands: { commands: [{ name: "web", description: "d", hint: "h" }, { description: "nameless" }] } }), [{ name: "web", description: "d", hint: "h" }]);
  assert.equal(commandPrefix("/we", 3), "we");
  assert.equal(commandPrefix("/", 1), "");
  assert.equal(commandPrefix("/web x", 6), null);
  assert.equal(commandPrefix("a /we", 5), null);
  assert.deepEqual(mentionPrefix("see @src/au", 11), { letters: "src/au", at: 4 });
  assert.deepEqual(mentionPrefix("@", 1), { letters: "", at: 0 });
  assert.equal(mentionPrefix("me@example", 10), null);
  assert.equal(mentionPrefix("@a b", 4), null);
});

test("usage is shown where it is told, in few characters", () => {
  assert.deepEqual(contextUsage({ usage: { used: 1200, size: 200_000, cost: { amount: 0.0123, currency: "USD" } } }), { used: 1200, size: 200_000, cost: "$0.0123" });
  assert.deepEqual(contextUsage({ usage: { used: 5, size: 0, cost: null } }), { used: 5, size: null, cost: "" });
  assert.equal(contextUsage({ usage: { used: 0, size: 0, cost: null } }), null);
  assert.equal(contextUsage({}), null);
  assert.equal(contextUsage({ usage: { used: 1, cost: { amount: 2, currency: "credits!" } } })?.cost, "2 credits!");
  assert.deepEqual([940, 1000, 12_345, 99_949, 200_000, 1_234_567].map(tokensText), ["940", "1k", "12.3k", "99.9k", "200k", "1.2M"]);
});

test("files are pointed to by @ at the beginning of a word, with something of a path", () => {
  assert.deepEqual(mentions("see @src/auth.py, (@docs/a.md) and @README.md."), ["src/auth.py", "docs/a.md", "README.md"]);
  assert.deepEqual(mentions("ask @ada or mail ada@example.org, twice @a/b @a/b"), ["a/b"]);
  assert.deepEqual(mentions("@... @/ @"), []);
});

test("marks stand where the daemon counted them, whatever the letters", () => {
  assert.deepEqual(highlightParts({ snippet: "🎉 one two", marks: [[2, 5]] }), [{ text: "🎉 ", hit: false }, { text: "one", hit: true }, { text: " two", hit: false }]);
  assert.deepEqual(highlightParts({ snippet: "none", marks: [] }), [{ text: "none", hit: false }]);
});

test("a call that an agent tells of half is still shown", () => {
  const data = callData({ data: { id: "1", title: "Read", call: "c1" } });
  assert.deepEqual([data.call, data.sort, data.status, data.content.length], ["c1", "other", "pending", 0]);
  assert.equal(agentCallStatus({ status: "cancelled" }).word, "cancelled");
  assert.equal(agentCallStatus({ status: "dreaming" }).word, "dreaming");
  assert.equal(formatJson({}), "");
  assert.equal(formatJson("text"), "text");
  assert.deepEqual(parsePlan({ entries: [{ content: "a" }] }), [{ content: "a", status: "pending", priority: "" }]);
});

test("two texts become one diff with its lines counted", () => {
  const { diff, added, removed } = formatUnifiedDiff("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nB\nc\nd\ne\nf\ng\nh\ni");
  assert.deepEqual([added, removed], [2, 1]);
  assert.equal(diff, "@@ -1,8 +1,9 @@\n a\n-b\n+B\n c\n d\n e\n f\n g\n h\n+i\n");
  assert.equal(formatUnifiedDiff("", "new\n").diff, "@@ -0,0 +1,1 @@\n+new\n");
});

test("a form gives what its fields ask for, and leaves out what is empty", () => {
  const fields = formFields({
    required: ["host"],
    properties: {
      host: { type: "string", title: "Host" },
      kind: { type: "string", oneOf: [{ const: "pg", title: "Postgres" }] },
      port: { type: "integer", default: 5432 },
      tls: { type: "boolean" },
      tags: { type: "array", items: { anyOf: [{ const: "a", title: "A" }] } },
    },
  });
  assert.deepEqual(fields.map(({ kind, required }) => [kind, required]), [["text", true], ["choice", false], ["number", false], ["boolean", false], ["several", false]]);
  assert.deepEqual(formValues(fields, new Map()), { port: 5432, tls: false, tags: [] });
  assert.deepEqual(formValues(fields, new Map<string, string | boolean | string[]>([["host", "h"], ["kind", "pg"], ["port", "x"], ["tls", true], ["tags", ["a"]]])), { host: "h", kind: "pg", port: "x", tls: true, tags: ["a"] });
});

test("in a conversation the hand is over what was turned to, else the first question, else what runs", () => {
  const call = (id: string, status: "waiting" | "running" | "done", of = "h1"): TrackedCall => ({ id, status, caller: { thread: of } }) as unknown as TrackedCall;
  const asked = (id: string, at: number): TrackedApproval => ({ id: `a${id}`, call_id: id, status: "open", asked_at: at }) as unknown as TrackedApproval;
  const calls = [call("c1", "running"), call("c2", "waiting"), call("c3", "waiting"), call("c4", "waiting", "h2"), call("c5", "done")];
  const model = { calls: new Map(calls.map((one) => [one.id, one])), approvals: new Map([["a3", asked("c3", 1)], ["a2", asked("c2", 2)], ["a4", asked("c4", 0)]]) } as unknown as Model;
  assert.equal(currentThreadCall(model, "h1", null), "c3");
  assert.equal(currentThreadCall(model, "h1", "c2"), "c2");
  assert.equal(currentThreadCall(model, "h1", "c5"), "c3");
  assert.equal(currentThreadCall({ ...model, approvals: new Map() }, "h1", null), "c3");
  assert.equal(currentThreadCall(model, "h9", null), null);
});

test("a message for an agent that works steers it, unless it cannot be steered or the message is a command", () => {
  assert.equal(whileWorking("steer", true, "use tabs"), "steer");
  assert.equal(whileWorking("steer", false, "use tabs"), "queue");
  assert.equal(whileWorking("steer", true, "/compact"), "queue");
  assert.equal(whileWorking("replace", false, "stop that"), "replace");
  assert.match(whileWorkingText("queue", false, "opencode"), /^opencode takes no message while it works/);
  assert.equal(whileWorkingText("queue", true, "claude"), "claude gets this when it has finished.");
});

test("only the agent that the thread shows can be steered, and only if it said so", () => {
  assert.equal(canSteer({ agent: { name: "claude", steers: true } }, "claude"), true);
  assert.equal(canSteer({ agent: { name: "claude", steers: true } }, "opencode"), false);
  assert.equal(canSteer({ agent: { name: "claude" } }, "claude"), false);
  assert.equal(canSteer({}, "claude"), false);
});

test("a message after an answer that goes on was given while the agent worked", () => {
  const said = [["m1", "user", "end_turn"], ["m2", "assistant", "steered"], ["m3", "user", "end_turn"], ["m4", "assistant", null]] as const;
  assert.deepEqual([...steeredMessages(said.map(([id, role, stop]) => ({ id, role, stop })))], ["m3"]);
});
