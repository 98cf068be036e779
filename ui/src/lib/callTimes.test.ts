import assert from "node:assert/strict";
import { test } from "node:test";

import { actorText, deciderText, fullTime, sentReview, timeOfDay, timeParts } from "./callTimes.ts";

const call = {
  status: "done", started_at: 0, asked_at: 0, reviewed_at: null, answered_at: 109_000, answered_by: "a person on the page", edited: false, ran_at: 109_000, ended_at: 109_100,
  waited_ms: 109_000, ran_ms: 1100, allowed_by: "approval a1", by: "execute_command",
} as const;

test("a row tells how long a call ran and how long it waited", () => {
  assert.deepEqual(timeParts(call), ["ran 1.1 s", "waited 1:49"]);
  assert.deepEqual(timeParts({ ...call, asked_at: null }), ["ran 1.1 s"]);
  assert.deepEqual(timeParts({ ...call, ran_at: null }), ["waited 1:49"]);
  assert.deepEqual(timeParts({ ...call, asked_at: null, reviewed_at: 1 }), ["ran 1.1 s", "waited 1:49"]);
});

test("a finished call says who allowed it, and whether it was edited", () => {
  assert.equal(deciderText(call), "allowed by you");
  assert.equal(deciderText({ ...call, edited: true }), "allowed by you, edited");
  assert.equal(deciderText({ ...call, answered_by: "a person on the command line" }), "allowed by you on the command line");
  assert.equal(deciderText({ ...call, allowed_by: "rule r1", answered_by: null }, () => "`git diff …`"), "allowed by `git diff …`");
  assert.equal(deciderText({ ...call, allowed_by: "rule r1", answered_by: null }, () => "reads in the workspace"), "allowed by “reads in the workspace”");
  assert.equal(deciderText({ ...call, status: "denied", by: "a person on the page", ran_at: null }), "denied by you");
  assert.equal(deciderText({ ...call, status: "cancelled", answered_by: null, ran_at: null }), "");
  assert.equal(deciderText({ ...call, allowed_by: "nobody" }), "you were not asked");
});

test("an actor is named for the reader", () => {
  assert.equal(actorText("a person on the page"), "you");
  assert.equal(actorText("client"), "client");
  assert.equal(actorText("rule r1", (rule) => `${rule}!`), "r1!");
});

test("a time of day has its date only on another day", () => {
  const noon = new Date(2026, 10, 18, 12, 5).getTime();
  assert.equal(timeOfDay(noon, noon), "12:05");
  assert.equal(timeOfDay(noon, noon + 86_400_000), "Nov 18 12:05");
  assert.equal(timeOfDay(noon, noon + 86_400_000 * 365), "Nov 18 2026");
  assert.equal(fullTime(noon, noon + 300_000), "18 Nov 2026, 12:05:00, 5 min ago");
});

test("a reviewed change says how many hunks were kept", () => {
  assert.equal(sentReview({ hunks: 3, kept: 1, rejected: 1, edited: 1 })?.summary, "kept 1 of 3 hunks, edited 1");
  assert.equal(sentReview({ hunks: 3, kept: 1, partly: 2, rejected: 0, edited: 0 })?.summary, "kept 1 of 3 hunks, 2 in part");
  assert.equal(sentReview({ hunks: 1, kept: 1, edited: 0 })?.summary, "kept 1 of 1 hunk");
  assert.equal(sentReview(undefined), null);
});
