import assert from "node:assert/strict";
import { test } from "node:test";

import { brief, placeOf, reasonsOf, repeats } from "./claimText.ts";
import type { Claim, PartRisk, Preview } from "../api/types.ts";

function run(resource: string, facts: Partial<Claim> = {}): Claim {
  return { action: "run", resource, inside: true, protected: false, words: resource.split(" "), opaque: "", ...facts };
}

const deletes: PartRisk = { level: "high", reasons: ["deletes files"] };
const runs: PartRisk = { level: "medium", reasons: ["runs a command with your rights"] };

function command(line: string): Preview {
  return { kind: "command", command: line, cwd: "/w", program: "/bin/sh", environment: [] } as Preview;
}

test("a part tells its own reasons, and not twice what cannot be read of it", () => {
  assert.deepEqual(reasonsOf(run("rm -rf build"), deletes), ["deletes files"]);
  assert.deepEqual(reasonsOf(run("$x", { opaque: "It is an expansion." }), { level: "high", reasons: ["deletes files", "It is an expansion."] }), ["deletes files"]);
  assert.deepEqual(reasonsOf(run("make"), undefined), []);
});

test("what a file's verb and place say is not said again as a reason, unless it is high", () => {
  const write = run("/w/a.txt", { action: "write" });
  assert.deepEqual(reasonsOf(write, { level: "medium", reasons: ["changes a file in the workspace"] }), []);
  assert.deepEqual(reasonsOf(write, { level: "high", reasons: ["writes a protected place"] }), ["writes a protected place"]);
});

test("where a part lies is said once", () => {
  assert.equal(placeOf(run("rm a"), ["deletes files"]), "in workspace");
  assert.equal(placeOf(run("rm /a", { inside: false }), ["deletes files"]), "outside workspace");
  assert.equal(placeOf(run("rm /a", { inside: false }), ["reaches outside the workspace"]), "");
  assert.equal(placeOf(run("$x", { opaque: "an expansion" }), []), "");
  assert.equal(placeOf(run("example.org", { action: "connect" }), []), "");
});

test("several parts that cannot be read are one reason, and one says it in its own words", () => {
  const [first, second] = [run("$x", { opaque: "an expansion" }), run("$(y)", { opaque: "a substitution" })];
  assert.equal(brief(["deletes files", "an expansion"], [first]), "deletes files · an expansion");
  assert.equal(brief(["deletes files", "an expansion", "a substitution"], [first, second]), "deletes files · 2 parts cannot be read with certainty");
  assert.equal(brief([], []), "");
});

test("a command of one plain part is not listed again below itself, unless that adds a reason", () => {
  assert.equal(repeats([run("make")], command("make\n"), runs.reasons, [runs]), true);
  assert.equal(repeats([run("make")], command("make"), runs.reasons, []), true);
  assert.equal(repeats([run("rm a")], command("rm a"), runs.reasons, [deletes]), false);
  assert.equal(repeats([run("make")], command("timeout 5 make"), runs.reasons, [runs]), false);
  assert.equal(repeats([run("make"), run("ls")], command("make && ls"), runs.reasons, [runs]), false);
  assert.equal(repeats([run("make", { opaque: "why" })], command("make"), runs.reasons, [runs]), false);
  assert.equal(repeats([run("/w/a", { action: "write" })], null, [], []), false);
});
