import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesText, looserPolicy, receiptText, SECTIONS, typedValue, valueText } from "./settingsText.ts";

test("a receipt names what was stopped, and what may go on", () => {
  assert.equal(receiptText({ operations: 0, calls: 0, terminals: 0, beyond: 0 }), "Nothing was at work.");
  assert.equal(receiptText({ operations: 1, calls: 2, terminals: 1, beyond: 0 }), "Stopped: 1 prompt, 2 calls, 1 terminal.");
  assert.match(receiptText({ operations: 0, calls: 1, terminals: 0, beyond: 1 }), /^Stopped: 1 call\. 1 call of clients .* may go on/);
});

test("a setting is shown in one section, as it would stand in the file", () => {
  assert.equal(SECTIONS.find(({ names }) => names.test("terminal.keep_days"))?.title, "What is kept, and how long");
  assert.equal(SECTIONS.find(({ names }) => names.test("terminal.shell"))?.title, "Commands and terminals");
  assert.equal(valueText("ask"), '"ask"');
  assert.equal(valueText(["a", 1]), '["a",1]');
});

test("what is typed becomes a value of the setting's kind, and nothing its default", () => {
  const field = (kind: "number" | "names" | "text") => ({ kind, choices: [], least: null, most: null, optional: false, secret: false, about: "" });
  assert.equal(typedValue(field("number"), "1_000"), 1000);
  assert.equal(typedValue(field("number"), "soon"), undefined);
  assert.deepEqual(typedValue(field("names"), "GOPATH, CARGO_*"), ["GOPATH", "CARGO_*"]);
  assert.equal(typedValue(field("text"), " "), null);
});

test("a large number of bytes is said in a unit too", () => {
  assert.equal(bytesText("undo.keep_bytes", 1_073_741_824), "That is 1.1 GB.");
  assert.equal(bytesText("undo.keep_days", 1_073_741_824), "");
  assert.equal(bytesText("terminal.max_bytes", null), "");
});

test("only what lets more calls pass asks first", () => {
  assert.match(looserPolicy("default_policy", "allow"), /without asking/);
  assert.equal(looserPolicy("default_policy", "deny"), "");
  assert.match(looserPolicy("human_in_the_loop", false), /without asking/);
});
