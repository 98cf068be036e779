import assert from "node:assert/strict";
import { test } from "node:test";

import type { Claim, PartRisk, Preview } from "../api/types.ts";
import { claimPlace, claimReasons, claimRows, reasonsText, repeatsPreview } from "./claimText.ts";

function run(resource: string, facts: Partial<Claim> = {}): Claim {
  return { action: "run", resource, inside: true, protected: false, words: resource.split(" "), opaque: "", calm: false, reads: false, server: "", arguments: [], ...facts };
}

const deletes: PartRisk = { level: "high", reasons: ["deletes files"] };
const runs: PartRisk = { level: "medium", reasons: ["runs make"] };

function command(line: string): Preview {
  return { kind: "command", command: line, cwd: "/w", program: "/bin/sh", environment: [] } as Preview;
}

test("a part tells its own reasons, and not twice what cannot be read of it", () => {
  assert.deepEqual(claimReasons(run("rm -rf build"), deletes), ["deletes files"]);
  assert.deepEqual(claimReasons(run("$x", { opaque: "It is an expansion." }), { level: "high", reasons: ["deletes files", "It is an expansion."] }), ["deletes files"]);
  assert.deepEqual(claimReasons(run("make"), undefined), []);
});

test("what a file's verb and place say is not said again as a reason, unless it is high", () => {
  const write = run("/w/a.txt", { action: "write" });
  assert.deepEqual(claimReasons(write, { level: "medium", reasons: ["changes a file in the workspace"] }), []);
  assert.deepEqual(claimReasons(write, { level: "high", reasons: ["writes a protected place"] }), ["writes a protected place"]);
});

test("where a part lies is said once", () => {
  assert.equal(claimPlace(run("rm a"), ["deletes files"]), "in workspace");
  assert.equal(claimPlace(run("rm /a", { inside: false }), ["deletes files"]), "outside workspace");
  assert.equal(claimPlace(run("rm /a", { inside: false }), ["reaches outside the workspace"]), "");
  assert.equal(claimPlace(run("git push", { server: "git" }), []), "", "nobody knows where a server works");
  assert.equal(claimPlace(run("$x", { opaque: "an expansion" }), []), "");
  assert.equal(claimPlace(run("example.org", { action: "connect" }), []), "");
});

test("of several parts that cannot be analysed the first is told, and the others are counted", () => {
  const [first, second] = [run("$x", { opaque: "an expansion" }), run("$(y)", { opaque: "a substitution" })];
  assert.equal(reasonsText(["deletes files", "an expansion"], [first]), "deletes files · an expansion");
  assert.equal(reasonsText(["deletes files", "an expansion", "a substitution"], [first, second]), "deletes files · an expansion · 1 more part cannot be analysed");
  assert.equal(reasonsText([], []), "");
});

test("a command of one plain part is not listed again below itself, unless that adds a reason", () => {
  assert.equal(repeatsPreview([run("make")], command("make\n"), runs.reasons, [runs]), true);
  assert.equal(repeatsPreview([run("make")], command("make"), runs.reasons, []), true);
  assert.equal(repeatsPreview([run("rm a")], command("rm a"), runs.reasons, [deletes]), false);
  assert.equal(repeatsPreview([run("make")], command("timeout 5 make"), runs.reasons, [runs]), false);
  assert.equal(repeatsPreview([run("make"), run("ls")], command("make && ls"), runs.reasons, [runs]), false);
  assert.equal(repeatsPreview([run("make", { opaque: "why" })], command("make"), runs.reasons, [runs]), false);
  assert.equal(repeatsPreview([run("/w/a", { action: "write" })], null, [], []), false);
});

test("parts that read the same are one row, with the highest risk and every reason", () => {
  const claims = [run("curl x"), run("sudo bash", { opaque: "runs as root" }), run("sudo bash", { opaque: "runs as root" }), run("sudo bash")];
  const rows = claimRows(claims, [runs, deletes, { level: "medium", reasons: ["deletes files", "runs as root (sudo)"] }, runs], []);
  assert.deepEqual(rows.map((row) => row.claims), [[0], [1, 2], [3]]);
  assert.deepEqual(rows[1]?.risk, { level: "high", reasons: ["deletes files", "runs as root (sudo)"] });
  const verdict = { claim: 2, effect: "deny", rule: "r1", why: "" } as const;
  assert.equal(claimRows(claims, [], [verdict as never]).length, 4, "decisions that differ keep their rows");
});
