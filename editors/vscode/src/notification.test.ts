import assert from "node:assert/strict";
import { test } from "node:test";

import { canAnswerHere } from "./notification.ts";

const QUESTION = { risk: "low", title: "mail send: to=ann", reviewable: false, preview: null } as const;

test("a short plain question of low or medium risk is answered in a notification", () => {
  assert.equal(canAnswerHere(QUESTION), true);
  assert.equal(canAnswerHere({ ...QUESTION, risk: "medium" }), true);
});

test("high risk, long lines, reviews and hidden characters are only shown", () => {
  assert.equal(canAnswerHere({ ...QUESTION, risk: "high" }), false);
  assert.equal(canAnswerHere({ ...QUESTION, reviewable: true }), false);
  assert.equal(canAnswerHere({ ...QUESTION, title: "x".repeat(161) }), false);
  for (const title of ["mail send: to=a\\u{202e}b", "mail send: to=a\u202eb", "git x: m=one⏎two"]) assert.equal(canAnswerHere({ ...QUESTION, title }), false, title);
});
