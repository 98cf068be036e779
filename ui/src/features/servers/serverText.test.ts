import assert from "node:assert/strict";
import { test } from "node:test";

import { readHeaders, readVariables, restartButton } from "./serverText.ts";

test("variables are read line by line, and a wrong line is named", () => {
  assert.deepEqual(readVariables("A=1\n\n B=x=y "), { A: "1", B: "x=y" });
  assert.equal(readVariables("A=1\nnothing"), "nothing");
});

test("headers are read line by line, and a wrong line is named", () => {
  assert.deepEqual(readHeaders("Authorization: Bearer {secret:A}\n\nX-A:b:c"), { Authorization: "Bearer {secret:A}", "X-A": "b:c" });
  assert.equal(readHeaders("A: 1\nX {secret:A}"), "X {secret:A}");
});

test("only what runs can be restarted, and what failed can be tried again", () => {
  assert.equal(restartButton("running").isOff, false);
  assert.deepEqual([restartButton("failed").word, restartButton("failed").isOff], ["Retry", false]);
  for (const state of ["idle", "held", "disabled"] as const) {
    assert.equal(restartButton(state).isOff, true);
    assert.match(restartButton(state).title, /^It does not run\. ./);
  }
});
