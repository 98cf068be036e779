import assert from "node:assert/strict";
import { test } from "node:test";

import type { Caller, ClientView } from "../../api/types.ts";
import type { TrackedApproval } from "../../state/model.ts";
import { callerName, callerSession, clientNews, clientStates, sessionFilter, toolInput, withToolInput } from "./clientText.ts";

const NOW = 1_000_000;
const caller: Caller = { door: "hook", client: "claude", key: "claude s1", workspace: "/w", thread: null, operation: null };

function client(facts: Partial<ClientView> = {}): ClientView {
  return { key: "claude s1", client: "claude", title: "Claude Code", session: "s1", folder: "/work/shop", pid: 1, terminal_id: null, tty: "", state: "working", since: NOW - 60_000, started_at: 0, tool: "", message: "", approvals: [], ...facts };
}

function state(facts: Partial<ClientView> = {}) {
  const [found] = clientStates([client(facts)], []);
  assert.ok(found);
  return found;
}

test("an open approval of its session means that a client needs the person", () => {
  const asked = { caller, asked_at: 7 } as TrackedApproval;
  const [needs] = clientStates([client()], [asked]);
  assert.deepEqual([needs?.status.word, needs?.since], ["needs you", 7]);
  const other = { ...asked, caller: { ...caller, key: "claude s2" } };
  assert.equal(clientStates([client()], [other])[0]?.status.word, "working");
});

test("an answered approval that the last frame still has does not count", () => {
  assert.equal(state({ state: "needs_you", approvals: ["a1"] }).status.word, "working");
  assert.equal(state({ state: "needs_you" }).status.word, "needs you");
});

test("a client that wants attention or ends a long turn is news, a short turn is not", () => {
  assert.equal(clientNews(state(), state({ state: "needs_you", message: "May I?" }), NOW), "Claude Code in shop wants your attention: May I?");
  assert.equal(clientNews(state(), state({ state: "needs_you", approvals: ["a1"] }), NOW), "");
  assert.equal(clientNews(state(), state({ state: "idle" }), NOW), "Claude Code in shop has finished");
  assert.equal(clientNews(state({ since: NOW - 5_000 }), state({ state: "idle" }), NOW), "");
  assert.equal(clientNews(undefined, state({ state: "needs_you" }), NOW), "");
});

test("the filter of a session names its caller", () => {
  assert.equal(sessionFilter("claude", "s1"), "session:claude:s1");
});

test("a client's own work has the client's name, session and input", () => {
  assert.deepEqual([callerName(caller), callerSession(caller)], ["Claude Code", "s1"]);
  const mcp: Caller = { ...caller, door: "stdio", client: "claude-code" };
  assert.deepEqual([callerName(mcp), callerSession(mcp)], ["claude-code", ""]);
  const whole = { client: "claude", input: { command: "ls" } };
  assert.deepEqual(toolInput("client_work", whole), { command: "ls" });
  assert.deepEqual(withToolInput("client_work", whole, { command: "pwd" }), { client: "claude", input: { command: "pwd" } });
  assert.deepEqual(withToolInput("execute_command", whole, { command: "pwd" }), { command: "pwd" });
});
