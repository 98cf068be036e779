import assert from "node:assert/strict";
import { test } from "node:test";

import { connectCommand, hasCalled, programOf, splitClients } from "./connectCommands.ts";

test("the commands call Handrail as it is called on this machine", () => {
  const line = "claude mcp add handrail -- env HANDRAIL_HOME=/tmp/h /opt/bin/handrail mcp";
  assert.equal(programOf(line), "env HANDRAIL_HOME=/tmp/h /opt/bin/handrail");
  assert.equal(connectCommand("claude", line), "env HANDRAIL_HOME=/tmp/h /opt/bin/handrail connect claude");
  assert.equal(connectCommand("other", "claude mcp add handrail -- handrail mcp"), "handrail mcp");
});

test("a client has connected when one that calls itself so has made a call", () => {
  assert.equal(hasCalled("claude", ["handrail demo", "claude-code"]), true);
  assert.equal(hasCalled("codex", ["handrail demo", "claude-code"]), false);
  assert.equal(hasCalled("vscode", ["Visual Studio Code"]), true);
});

test("installed clients are tabs; without any, the first few are", () => {
  const client = (name: string, found: boolean) => ({ name, title: name, found, set_up: false });
  const some = splitClients([client("codex", true), client("claude", false)]);
  assert.deepEqual([some.tabs.map(({ name }) => name), some.more.map(({ name }) => name)], [["codex"], ["claude"]]);
  assert.equal(splitClients([client("a", false), client("b", false)]).tabs.length, 2);
});
