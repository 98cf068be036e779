import assert from "node:assert/strict";
import { test } from "node:test";

import { hasTerm, isAboutCalls, toggleTerm } from "../features/calls/callFilter.ts";
import { receiptLines } from "../features/calls/receipt.ts";
import { renderLine } from "./ansi.ts";
import { excerpt, reasonDelivery, restartText } from "./callText.ts";
import { clockText, durationText, sizeText, spokenText, urgency } from "./duration.ts";
import { parseUnifiedDiff, splitRows } from "./parseDiff.ts";
import { hiddenTextWarning, visiblePieces, visibleText } from "./visibleText.ts";

test("plain text, newlines, tabs and other scripts are left as they are", () => {
  for (const text of ["", "git status\n\tls -la", "größer 日本語 🎉 ❤️"]) {
    assert.deepEqual(visiblePieces(text), [{ text }]);
    assert.equal(hiddenTextWarning(text), null);
  }
});

test("a text direction override is spelled out and flagged", () => {
  assert.deepEqual(visiblePieces("a\u202eb"), [
    { text: "a" },
    { text: "\\u{202e}", flag: "U+202E text direction override" },
    { text: "b" },
  ]);
});

test("controls, zero-width characters, odd spaces, tags and half characters are all flagged", () => {
  for (const hidden of ["\r", "\x1b", "\x7f", "\x85", "\u00a0", "\u200b", "\u2066", "\u2028", "\u3164", "\ufeff", "\u{e0041}", "\ud800"]) {
    const piece = visiblePieces(`x${hidden}y`)[1];
    assert.ok(piece?.flag, JSON.stringify(hidden));
    assert.equal(visibleText(`x${hidden}y`), `x${piece.text}y`);
  }
});

test("the warning counts what is hidden by kind", () => {
  assert.equal(
    hiddenTextWarning("rm \u200b\u200b-rf\u202e"),
    "Contains hidden characters, shown escaped: 2 zero-width characters, 1 text direction override.",
  );
});

test("a printed line is what a terminal would have shown", () => {
  assert.equal(renderLine("\x1b[1;31mred\x1b[0m"), "red");
  assert.equal(renderLine("10%\r20%\r100%"), "100%");
  assert.equal(renderLine("progress 99%\rdone\x1b[K"), "done");
  assert.equal(renderLine("abc\b\bX"), "aXc");
  assert.equal(renderLine("line\r"), "line");
  assert.equal(renderLine("\x1b]0;title\x07text"), "text");
  assert.equal(renderLine("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
  assert.equal(renderLine("cut \x1b[3"), "cut ");
  assert.equal(renderLine("a\x07b\x00c"), "abc");
  assert.equal(renderLine("a\u202eb"), "a\\u{202e}b");
});

test("a hostile cursor move builds no giant line", () => {
  assert.ok(renderLine("a\x1b[999999999Cb").length < 2000);
});

const DIFF = "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@ def f():\n one\n-two\n-three\n+2\n four\n\\ No newline at end of file\n";

test("a unified diff gives every line its number on both sides", () => {
  assert.deepEqual(
    parseUnifiedDiff(DIFF).map((line) => [line.kind, line.text, line.old, line.new]),
    [
      ["hunk", "@@ -1,4 +1,4 @@ def f():", null, null],
      ["same", "one", 1, 1],
      ["removed", "two", 2, null],
      ["removed", "three", 3, null],
      ["added", "2", null, 2],
      ["same", "four", 4, 3],
      ["note", "No newline at end of file", null, null],
    ],
  );
});

test("side by side, removed lines face the added ones", () => {
  const rows = splitRows(parseUnifiedDiff(DIFF)).map((row) => [row.left?.text ?? null, row.right?.text ?? null]);
  assert.deepEqual(rows.slice(2, 4), [["two", "2"], ["three", null]]);
});

test("a filter chip switches its word on, over, and off", () => {
  assert.equal(toggleTerm("npm", "status", "done"), "npm status:done");
  assert.equal(toggleTerm("npm status:done", "status", "failed"), "npm status:failed");
  assert.equal(toggleTerm("npm status:failed", "status", "failed"), "npm");
  assert.equal(toggleTerm('"a  b" -status:done', "folder", "my shop"), '"a  b" -status:done folder:"my shop"');
  assert.equal(hasTerm('x folder:"my shop"', "folder", "my shop"), true);
  assert.equal(hasTerm("-status:done", "status", "done"), false);
  assert.deepEqual(["", "session:claude:1 -tool:x", "status:done npm", "foo:bar"].map(isAboutCalls), [true, true, false, false]);
});

test("times are short, steady and honest", () => {
  assert.deepEqual([0, 42_900, 67_000, 3_723_000].map(clockText), ["0:00", "0:42", "1:07", "1:02:03"]);
  assert.deepEqual([12, 4200, 67_000].map(durationText), ["12 ms", "4.2 s", "1:07"]);
  assert.deepEqual([60_000, 60_001, 300_001].map((ms) => urgency(ms)), ["calm", "long", "too-long"]);
  assert.equal(spokenText(67_000), "1 minute 7 seconds");
  assert.deepEqual([1, 999, 81_920, 4_100_000].map(sizeText), ["1 byte", "999 bytes", "82 kB", "4.1 MB"]);
});

test("a receipt reads as plain sentences", () => {
  const lines = receiptLines({
    ended_by: "page",
    stopped: true,
    signals: [{ signal: "SIGTERM", after_ms: 0 }, { signal: "SIGKILL", after_ms: 2000 }],
    processes_stopped: [{ pid: 7, name: "bash" }, { pid: 8, name: "sleep" }],
    processes_left: [],
    bytes_kept: 14_000,
    files_changed: [],
  }, false);
  assert.deepEqual(lines, [
    "All of its work has ended.",
    "Sent SIGTERM at once, SIGKILL after 2.0 s.",
    "Stopped 2 processes: bash (7), sleep (8).",
    "14 kB of output kept.",
  ]);
});

test("a receipt does not call the work ended while its terminal runs", () => {
  const kept = { ended_by: "handrail", stopped: true, signals: [], processes_stopped: [], processes_left: [], bytes_kept: 0, files_changed: [] };
  assert.deepEqual(receiptLines(kept, true), ["Its process still runs in its terminal."]);
});

test("a restart is said with its numbers", () => {
  const found = { crashed: false, interrupted: 3, approvals_kept: 1, terminals_adopted: 0 };
  assert.equal(restartText(found), "Daemon restarted: 3 calls interrupted, 1 approval kept, 0 terminals re-adopted.");
});

test("a row shows the whole of a short command, and of a long one how much is missing", () => {
  assert.deepEqual(excerpt("rm -rf build\nnpm publish"), { shown: "rm -rf build\nnpm publish", hidden: 0 });
  assert.deepEqual(excerpt("x".repeat(500)), { shown: "x".repeat(200), hidden: 300 });
  assert.equal(excerpt("a\n".repeat(10)).shown.split("\n").length, 5);
});

test("the reason of a denial says when the agent reads it", () => {
  const caller = { door: "acp", client: "codex", key: "h1", workspace: null, thread: "h1", operation: null } as const;
  assert.equal(reasonDelivery({ tool: "agent_work", caller }), "Reason; codex reads it with its next prompt");
  assert.equal(reasonDelivery({ tool: "agent_work", caller: { ...caller, client: "handrail" } }), "Reason, sent to the agent");
  assert.equal(reasonDelivery({ tool: "execute_command", caller }), "Reason, sent to the agent");
});
