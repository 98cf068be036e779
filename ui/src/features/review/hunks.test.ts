import assert from "node:assert/strict";
import { test } from "node:test";

import { codePieces } from "../../lib/codePieces.ts";
import { assembleFile, changedLines, editedChoice, type HunkChoice, lineChoice, normalizeChoice, normalizeLineEnds, restoreLineEnds, splitChoice, splitHunk, splitIntoHunks, splitLines, tallyChoices } from "../../lib/hunks.ts";
import { languageOf } from "../../lib/languages.ts";
import { diffSequences, originalIndex } from "../../lib/sequenceDiff.ts";
import { gapAt, hunkRows, pairRows } from "./diffRows.ts";
import { denialReason, summarizeReview } from "./reviewSummary.ts";

/** Small numbers that are the same in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * sides);
  };
}

function made(roll: (sides: number) => number): string {
  const count = roll(30);
  const text = Array.from({ length: count }, () => `${"abcdefgh"[roll(8)]}${roll(3) ? "" : roll(40)}${roll(9) ? "" : "\r"}\n`).join("");
  return roll(3) ? text : text.slice(0, -1);
}

/** The same text with some lines changed, gone or new. */
function mutated(text: string, roll: (sides: number) => number): string {
  const all = splitLines(text).flatMap((line) => {
    const what = roll(12);
    return what === 0 ? [] : what === 1 ? ["changed\n"] : what === 2 ? [line, "new\n"] : [line];
  });
  const whole = all.join("");
  return roll(6) ? whole : whole.replace(/\n$/, "");
}

const TEN = Array.from({ length: 30 }, (_, at) => `line ${at + 1}\n`).join("");
const CHANGED = TEN.replace("line 2\n", "line two\n").replace("line 15\n", "line 15\nline 15 and a half\n").replace("line 28\n", "");

test("all kept is the proposal, all rejected is the file as it was, whatever they are", () => {
  const roll = dice(7);
  for (let round = 0; round < 3000; round++) {
    const before = made(roll);
    const after = roll(4) ? mutated(before, roll) : made(roll);
    const whole = splitIntoHunks(before, after);
    assert.equal(assembleFile(whole, []), after);
    assert.equal(assembleFile(whole, whole.hunks.map(() => "keep" as const)), after);
    assert.equal(assembleFile(whole, whole.hunks.map(() => "reject" as const)), before);
    assert.equal(before === after, whole.hunks.length === 0);
    const rows = whole.hunks.flatMap((_, at) => [...gapAt(whole, at).top, ...gapAt(whole, at).bottom, ...hunkRows(whole, at, "keep")]);
    for (const row of rows) {
      if (row.old !== null) assert.equal(whole.before[row.old - 1]?.replace(/\n$/, ""), row.text);
      if (row.new !== null) assert.equal(whole.after[row.new - 1]?.replace(/\n$/, ""), row.text);
    }
  }
});

test("each hunk is chosen by itself: the others are as they were chosen", () => {
  const roll = dice(11);
  for (let round = 0; round < 500; round++) {
    const before = made(roll) + TEN;
    const whole = splitIntoHunks(before, mutated(before, roll));
    const choices = whole.hunks.map((): HunkChoice => (["keep", "reject", { text: "mine\n" }] as const)[roll(3)] ?? "keep");
    let rest = assembleFile(whole, choices);
    whole.hunks.forEach((hunk, at) => {
      const choice = choices[at] ?? "keep";
      const part = typeof choice === "object" && "text" in choice ? choice.text : choice === "keep" ? whole.after.slice(...hunk.new).join("") : whole.before.slice(...hunk.old).join("");
      const found = rest.indexOf(part);
      assert.ok(found >= 0, `hunk ${at} is not in what is left`);
      rest = rest.slice(found + part.length);
    });
  }
});

test("lines are kept and rejected one by one, in whole hunks and in split ones", () => {
  const roll = dice(23);
  let partly = 0;
  for (let round = 0; round < 1000; round++) {
    const before = made(roll) + TEN;
    const whole = splitIntoHunks(before, mutated(before, roll));
    const without = new Set(whole.hunks.flatMap(changedLines).filter(() => roll(2)));
    const choices = whole.hunks.map((hunk) => lineChoice(hunk, without));
    const result = assembleFile(whole, choices);
    const rejected = new Set(choices.flatMap((choice, at) => (choice === "reject" ? changedLines(whole.hunks[at]!) : typeof choice === "object" && "without" in choice ? [...choice.without] : [])));
    assert.deepEqual(rejected, without);
    whole.before.forEach((line, at) => without.has(`old-${at + 1}`) && assert.ok(result.includes(line)));
    partly += tallyChoices(whole, choices).partly;

    const at = roll(Math.max(1, whole.hunks.length));
    const hunk = whole.hunks[at];
    if (!hunk) continue;
    const parts = [...choices.slice(0, at), ...splitChoice(hunk, choices[at] ?? "keep"), ...choices.slice(at + 1)];
    const split = splitHunk(whole, at);
    assert.equal(split.hunks.length, whole.hunks.length + hunk.changes.length - 1);
    assert.equal(assembleFile(split, parts), result);
    assert.equal(assembleFile(split, []), whole.after.join(""));
    assert.deepEqual(tallyChoices(split, parts, whole.hunks), tallyChoices(whole, choices));
  }
  assert.ok(partly > 100);
});

test("changes far apart are hunks of their own, near ones share one", () => {
  assert.deepEqual(splitIntoHunks(TEN, CHANGED).hunks.map(({ old, new: fresh }) => [old, fresh]), [
    [[1, 2], [1, 2]],
    [[15, 15], [15, 16]],
    [[27, 28], [28, 28]],
  ]);
  assert.equal(splitIntoHunks(TEN, TEN.replace("line 2\n", "2\n").replace("line 9\n", "9\n")).hunks.length, 1);
  assert.equal(splitIntoHunks(TEN, TEN.replace("line 2\n", "2\n").replace("line 10\n", "10\n")).hunks.length, 2);
});

test("two kept of three, one of them edited, is exactly that file", () => {
  const whole = splitIntoHunks(TEN, CHANGED);
  const text = assembleFile(whole, ["keep", "reject", editedChoice(whole, 2, "line twenty-eight")]);
  assert.equal(text, TEN.replace("line 2\n", "line two\n").replace("line 28\n", "line twenty-eight\n"));
});

test("the daemon's own hunks are taken where they fit, and made anew where they do not", () => {
  const before = "one\ntwo\nthree\n";
  const diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n";
  const theirs = splitIntoHunks(before, "one\n2\nthree\nfour\n", diff);
  assert.deepEqual(theirs.hunks, [{ old: [1, 3], new: [1, 4], changes: [{ old: [1, 2], new: [1, 2] }, { old: [3, 3], new: [3, 4] }] }]);
  assert.equal(splitIntoHunks(before, "one\n2\nthree\nfour\nfive\n", diff).hunks.length, 1, "one that does not fit is not believed");
  assert.equal(assembleFile(splitIntoHunks(before, "one\n2\nthree\nfour\nfive\n", diff), []), "one\n2\nthree\nfour\nfive\n");
  assert.deepEqual(splitIntoHunks("", "a\nb\n", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n").hunks[0]?.new, [0, 2]);
  assert.deepEqual(splitIntoHunks("a\n", "", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").hunks[0]?.old, [0, 1]);
  const ends = splitIntoHunks("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
  assert.equal(assembleFile(ends, ["reject"]), "a\nb");
});

test("an edited hunk ends its last line, unless the proposal leaves it open", () => {
  const edited = (before: string, after: string, typed: string) => {
    const whole = splitIntoHunks(before, after);
    return assembleFile(whole, [editedChoice(whole, 0, typed)]);
  };
  assert.equal(edited("a\nb\nc\n", "a\nB\nc\n", "bee"), "a\nbee\nc\n");
  assert.equal(edited("a\nb\nc\n", "a\nc\n", "bee\n"), "a\nbee\n\nc\n");
  assert.equal(edited("a\n", "b\n", "bee"), "bee\n");
  assert.equal(edited("a", "b", "bee"), "bee");
  assert.equal(edited("a\n", "b\n", ""), "");
});

test("an edit that comes to the proposal or to the file as it was is no edit", () => {
  const whole = splitIntoHunks("a\nb\nc\n", "a\nB\nc\n");
  assert.equal(normalizeChoice(whole, 0, editedChoice(whole, 0, "B")), "keep");
  assert.equal(normalizeChoice(whole, 0, { text: "b\n" }), "reject");
  assert.deepEqual(normalizeChoice(whole, 0, { text: "bee" }), { text: "bee" });
});

test("what was chosen is counted and told", () => {
  const whole = splitIntoHunks(TEN, CHANGED);
  const count = tallyChoices(whole, ["keep", "reject", { text: "x" }]);
  assert.deepEqual(count, { hunks: 3, kept: 1, partly: 0, rejected: 1, edited: 1 });
  const facts = { deletes: false, rewritten: false };
  assert.equal(summarizeReview({ tally: count, ...facts }, 2), "kept 1 of 3 hunks, 1 edited, 2 comments");
  assert.equal(summarizeReview({ tally: tallyChoices(whole, []), ...facts }, 0), "kept all 3 hunks");
  const some = lineChoice(whole.hunks[0]!, new Set(["new-2"]));
  assert.equal(summarizeReview({ tally: tallyChoices(whole, [some]), ...facts }, 0), "kept 2 of 3 hunks, 1 in part");
  assert.equal(assembleFile(whole, [some, "reject", "reject"]), TEN.replace("line 2\n", ""));
  assert.equal(denialReason(2, [{ line: 4, text: "no" }]), "Rejected all 2 hunks: nothing was written.\nLine 4: no");
});

test("files with CR LF throughout are eased and come back; mixed ones are left as they are", () => {
  assert.deepEqual(normalizeLineEnds("a\r\nb\r\n", "a\r\nB\r\n"), { before: "a\nb\n", after: "a\nB\n", crlf: true });
  assert.equal(restoreLineEnds("a\nB\n", true), "a\r\nB\r\n");
  assert.deepEqual(normalizeLineEnds("", "a\r\n"), { before: "", after: "a\n", crlf: true });
  for (const [before, after] of [["a\r\nb\n", "a\r\n"], ["a\n", "a\r\n"], ["a\r\n", "a\n"], ["", ""]] as const)
    assert.deepEqual(normalizeLineEnds(before, after), { before, after, crlf: false });
});

test("lines face those they came from, and only changed words are marked", () => {
  const whole = splitIntoHunks("keep\nif record.password == password:\n", "keep\nif record.hash == password:\n    pass\n");
  const rows = hunkRows(whole, 0, "keep");
  assert.deepEqual(rows.map(({ kind, old, new: fresh }) => [kind, old, fresh]), [["removed", 2, null], ["added", null, 2], ["added", null, 3]]);
  assert.deepEqual(rows[0]?.marks.map(([from, to]) => rows[0]?.text.slice(from, to)), ["password"]);
  assert.deepEqual(rows[1]?.marks.map(([from, to]) => rows[1]?.text.slice(from, to)), ["hash"]);
  assert.deepEqual(pairRows(rows).map(({ left, right }) => [left?.old ?? null, right?.new ?? null]), [[2, 2], [null, 3]]);
});

test("what lies between hunks is folded, but for a few lines", () => {
  const whole = splitIntoHunks(TEN, CHANGED);
  assert.deepEqual(gapAt(whole, 0).top.map(({ old }) => old), [1]);
  const between = gapAt(whole, 1);
  assert.deepEqual([between.top.map(({ old }) => old), between.folded, between.bottom.map(({ old, new: fresh }) => [old, fresh])], [[3, 4, 5], [5, 12], [[13, 13], [14, 14], [15, 15]]]);
  assert.deepEqual(gapAt(whole, 3).top.map(({ old, new: fresh }) => [old, fresh]), [[29, 29], [30, 30]]);
});

test("long texts with nothing in common, and with everything repeated, are compared at once", () => {
  const began = performance.now();
  const left = Array.from({ length: 20_000 }, (_, at) => `left ${at}`);
  const right = Array.from({ length: 20_000 }, (_, at) => `right ${at}`);
  assert.deepEqual(diffSequences(left, right), [{ old: [0, 20_000], new: [0, 20_000] }]);
  assert.ok(diffSequences(Array.from({ length: 20_000 }, (_, at) => `${at % 7}`), Array.from({ length: 20_000 }, (_, at) => `${at % 5}`)).length);
  assert.ok(performance.now() - began < 2000);
});

test("a line is traced to the one it came from", () => {
  const all = diffSequences(["a", "b", "c", "d"], ["a", "x", "y", "c", "d", "e"]);
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((at) => originalIndex(all, at)), [0, 1, 1, 2, 3, 4]);
});

test("colours, marks and what hides cut a line into pieces that are the line", () => {
  const pieces = codePieces("if a\u200b == b:", [[0, 2, "tok-keyword"]], [[3, 8]]);
  assert.deepEqual(pieces.map(({ text, colour, marked, flag }) => [text, colour, marked, flag !== undefined]), [
    ["if", "tok-keyword", false, false],
    [" ", "", false, false],
    ["a", "", true, false],
    ["\\u{200b}", "", true, true],
    [" ==", "", true, false],
    [" b:", "", false, false],
  ]);
  assert.deepEqual(codePieces("", [[0, 4, "x"]]), []);
});

test("bytes that are not UTF-8 are shown as such, only where the file is not", () => {
  assert.deepEqual(codePieces("caf\uefe9!", [], [], true).map(({ text, flag }) => [text, flag]), [
    ["caf", undefined],
    ["\\xe9", "The byte 0xE9, which is not UTF-8"],
    ["!", undefined],
  ]);
  assert.deepEqual(codePieces("caf\uefe9!").map(({ text }) => text), ["caf\uefe9!"]);
});

test("a file's language is known by its name, and a strange name is plain", () => {
  const known = { "src/auth.py": "python", "A/Dockerfile": "docker", "x.d.ts": "typescript", "Main.JAVA": "java", ".bashrc": "shell" };
  for (const [path, name] of Object.entries(known)) assert.equal(languageOf(path), name);
  for (const path of ["Makefile", "x.constructor", "toString", "py", "", "a.b/c"]) assert.equal(languageOf(path), null);
});
