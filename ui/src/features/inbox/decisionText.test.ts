import assert from "node:assert/strict";
import { test } from "node:test";

import { approval } from "../../gallery/calls.ts";
import { decisionText } from "./decisionText.ts";

const command = (text: string) => ({ kind: "command" as const, command: text, cwd: "/", program: "bash", environment: [] });

test("a decision answers back with what it was about", () => {
  const decided = (facts: Parameters<typeof approval>[0]) => decisionText(approval({ preview: command("git log"), ...facts }));
  assert.deepEqual(decided({ status: "allowed" }), { text: "Allowed `git log`.", rules: [] });
  assert.deepEqual(decided({ status: "allowed", edited: true }), { text: "Allowed `git log`, edited.", rules: [] });
  assert.deepEqual(decided({ status: "denied" }), { text: "Denied `git log`.", rules: [] });
  assert.deepEqual(decided({ status: "withdrawn" }), { text: "Cancelled `git log`.", rules: [] });
});

test("a decision that made rules names them, so that they can be taken back", () => {
  const { text, rules } = decisionText(approval({ preview: command("git log"), status: "allowed", rules: ["r1", "r2"] }));
  assert.equal(text, "Allowed `git log`. 2 rules made: you will not be asked again for calls like it.");
  assert.deepEqual(rules, ["r1", "r2"]);
});

test("a long command is cut", () => {
  assert.ok(decisionText(approval({ preview: command("x".repeat(500)), status: "allowed" })).text.length < 120);
});
