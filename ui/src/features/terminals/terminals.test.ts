import assert from "node:assert/strict";
import { test } from "node:test";

import type { TerminalView } from "../../api/types.ts";
import { inputRequestText, needsInput, roughDuration, terminalStatus } from "../../lib/terminalText.ts";
import { splitEnter } from "../../lib/visibleText.ts";
import { fittingFontSize, gridSize } from "./fontSize.ts";
import { OutputCursor } from "./outputCursor.ts";
import { needsConfirmation, preparePaste } from "./paste.ts";
import { safeLink } from "./safeLink.ts";
import { markStarts, parseMark } from "./shellMarks.ts";
import { type StatusInput, statusMessages } from "./statusLine.ts";
import { type InputContext, isUserInput } from "./xterm/userInput.ts";
import { MAX_QUEUED, WriteQueue } from "./xterm/writeQueue.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (some: Uint8Array): string => new TextDecoder().decode(some);
const agent = { person: false, name: "claude-code", workspace: null };
const person = { person: true, name: "a person", workspace: null };

function terminal(facts: Partial<TerminalView> = {}): TerminalView {
  return {
    id: "t1", seq: 1, name: "dev server", of: "tracked", owner: agent, call_id: null, shell: "/bin/bash", argv: [], size: [80, 24], running: true, pid: 1,
    exit_code: null, signal: null, lost: false, agent_gone: false, cwd: "/home/ada/api", busy: false, foreground: "bash", asks: null, taken: null, attached: false,
    started_at: 0, ended_at: null, last_output_at: null, bytes: 0, first: 0, lines_dropped: 0, forgotten: false, ...facts,
  };
}

test("frames in any order of cutting and repeating give each byte once", () => {
  const whole = bytes("0123456789");
  for (let cut = 0; cut <= 10; cut++)
    for (let back = 0; back <= cut; back++) {
      const place = new OutputCursor();
      const first = place.take({ offset: 0, bytes: whole.subarray(0, cut) });
      const second = place.take({ offset: cut - back, bytes: whole.subarray(cut - back) });
      assert.equal(text(first.bytes) + text(second.bytes), "0123456789", `cut at ${cut}, ${back} repeated`);
      assert.equal(second.missing, 0);
      assert.equal(second.at, 10 - second.bytes.length);
    }
});

test("bytes that never came are counted, and what follows them has its true offset", () => {
  const place = new OutputCursor();
  place.take({ offset: 100, bytes: bytes("abc") });
  assert.deepEqual(place.take({ offset: 110, bytes: bytes("xyz") }), { bytes: bytes("xyz"), at: 110, missing: 7 });
  assert.equal(place.end, 113);
});

test("a mark counts only with the terminal's own nonce", () => {
  assert.deepEqual(parseMark(133, "A;nonce=n1", "n1"), { kind: "prompt" });
  assert.deepEqual(parseMark(133, "D;7;nonce=n1;at=5", "n1"), { kind: "ended", exitCode: 7 });
  assert.deepEqual(parseMark(133, "D;nonce=n1", "n1"), { kind: "ended", exitCode: null });
  assert.deepEqual(parseMark(633, "E;echo a\\x3b echo b\\\\;n1", "n1"), { kind: "line", line: "echo a; echo b\\" });
  for (const forged of ["A", "A;nonce=", "A;nonce=n2", "D;0", "D;0;nonce=n1x"]) assert.equal(parseMark(133, forged, "n1"), null, forged);
  assert.equal(parseMark(633, "E;rm -rf;n2", "n1"), null);
  assert.equal(parseMark(133, "A;nonce=", ""), null, "a terminal without a nonce makes no marks");
});

test("output is cut where marks begin, so that each one's offset is known when it is read", () => {
  assert.deepEqual(markStarts(bytes("ab\x1b]133;A\x07c\x1b[1m\x1b]633;E\x07\x1b]133;D\x07")), [2, 23]);
  const seen: [string, number][] = [];
  const feed = new WriteQueue((piece, parsed) => (seen.push([text(piece).replaceAll("\x1b", "^"), feed.at]), parsed()), (go) => go());
  feed.take(bytes("ab\x1b]133;A\x07c\x1b]133;B\x07"), 1000);
  assert.deepEqual(seen, [["ab", 1000], ["^]133;A\x07c", 1002], ["^]133;B\x07", 1011]]);
});

test("a flood is read batch by batch, the next one after the picture was drawn", () => {
  let drawn: (() => void) | undefined;
  const calls: (() => void)[] = [];
  let size = 0;
  const feed = new WriteQueue((piece, parsed) => ((size += piece.length), calls.push(parsed)), (go) => (drawn = go));
  assert.ok(feed.take(new Uint8Array(1 << 20), 0));
  const batch = size;
  assert.ok(batch > 0 && batch < 1 << 20);
  for (const parsed of calls.splice(0)) parsed();
  assert.equal(size, batch, "nothing more before a picture");
  drawn?.();
  assert.equal(size, 2 * batch);
});

test("what waits is bounded, and dropping says how much it was", () => {
  const feed = new WriteQueue(() => {}, () => {});
  assert.ok(feed.take(new Uint8Array(MAX_QUEUED), 0));
  assert.equal(feed.take(new Uint8Array(MAX_QUEUED), MAX_QUEUED), false);
  assert.equal(feed.drop(), feed.drop() + (MAX_QUEUED - (160 << 10)));
});

const still: InputContext = { event: undefined, field: "", sinceMethodKey: Number.POSITIVE_INFINITY, wheelTypes: false };

test("what a trusted key, input or paste event sends is a person's", () => {
  for (const type of ["keydown", "keypress", "input", "paste", "compositionend"]) {
    assert.ok(isUserInput("\x1b[A", { ...still, event: { type, isTrusted: true } }), type);
    assert.ok(!isUserInput("\x1b[A", { ...still, event: { type, isTrusted: false } }), `a made-up ${type}`);
  }
});

test("a reply that output provoked is nobody's, whatever event is under way", () => {
  for (const reply of ["\x1b[?1;2c", "\x1b[0n", "\x1b[1;1R", "\x1b]11;rgb:0/0/0\x1b\\", "\x1b[I", "\x1b[M !!", "\x7f"]) {
    assert.ok(!isUserInput(reply, still), JSON.stringify(reply));
    for (const type of ["message", "focus", "mousedown", "mousemove", "wheel", "visibilitychange"])
      assert.ok(!isUserInput(reply, { ...still, event: { type, isTrusted: true } }), type);
  }
});

test("an input method's text is a person's when it stands in the terminal's own field", () => {
  assert.ok(isUserInput("日本", { ...still, field: "日本" }));
  assert.ok(!isUserInput("日本", { ...still, field: "" }));
  assert.ok(!isUserInput("\x1b[0n", { ...still, field: "\x1b[0n" }));
  assert.ok(isUserInput("\x7f", { ...still, sinceMethodKey: 5 }));
});

test("the wheel types only for a person who has the terminal", () => {
  const event = { type: "wheel", isTrusted: true };
  assert.ok(isUserInput("\x1b[A", { ...still, event, wheelTypes: true }));
  assert.ok(!isUserInput("\x1b[A", { ...still, event }));
  assert.ok(!isUserInput("\x1b[<65;2;1M", { ...still, event, wheelTypes: true }), "a report of the pointer's place is no line");
});

const cell = (letter: number): { width: number; height: number } => ({ width: letter * 0.6, height: Math.ceil(letter * 1.2) });

test("letters are as large as the room lets them be, within reason", () => {
  assert.equal(fittingFontSize({ width: 1000, height: 800 }, [80, 24], cell), 13);
  const letter = fittingFontSize({ width: 500, height: 800 }, [80, 24], cell);
  assert.ok(letter < 13 && 80 * cell(letter).width <= 500 && 80 * cell(letter + 0.5).width > 500);
  assert.equal(fittingFontSize({ width: 100, height: 100 }, [300, 90], cell), 8);
  assert.deepEqual(gridSize({ width: 800, height: 400 }, cell), [102, 25]);
  assert.deepEqual(gridSize({ width: 10, height: 10 }, cell), [20, 5]);
});

test("only pages are linked to, spelled as they would be opened", () => {
  assert.equal(safeLink("http://example.com/a b"), "http://example.com/a%20b");
  assert.equal(safeLink("https://еxample.com/"), "https://xn--xample-2of.com/");
  for (const bad of ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", " http://x", "http://user:pass@example.com", "http://", "vbscript:x"])
    assert.equal(safeLink(bad), null, bad);
});

test("a paste loses its control characters, and asks when lines would run by themselves", () => {
  assert.deepEqual(preparePaste("a\x1b[201~\tb\x00"), { text: "a[201~\tb", removed: 2, lines: 1 });
  assert.equal(needsConfirmation(preparePaste("one\ntwo"), false), true);
  assert.equal(needsConfirmation(preparePaste("one\ntwo"), true), false);
  assert.equal(needsConfirmation(preparePaste("one"), false), false);
});

test("a terminal's state has a sign and a word", () => {
  const asks = { prompt: "Password:", sure: "certain" as const, secret: true, since: 0 };
  const word = (facts: Partial<TerminalView>): string => terminalStatus(terminal(facts)).word;
  assert.equal(word({}), "running");
  assert.equal(word({ busy: true, foreground: "vim" }), "busy: vim");
  assert.equal(word({ busy: true, foreground: "vim", asks }), "waits for input");
  assert.equal(word({ asks: { ...asks, secret: false, sure: "likely" } }), "seems to wait");
  assert.equal(word({ busy: true, foreground: "vim", owner: person, asks: { ...asks, secret: false } }), "busy: vim", "no news to its owner");
  assert.equal(word({ owner: person, asks }), "waits for input", "but a secret is");
  assert.equal(word({ running: false, exit_code: 0 }), "exit 0");
  assert.equal(word({ running: false, exit_code: 1 }), "exit 1");
  assert.equal(word({ running: false, signal: "SIGTERM" }), "SIGTERM");
  assert.equal(word({ running: false, lost: true }), "lost");
  assert.equal(word({ busy: true, foreground: "a\u202eb" }), "busy: a\\u{202e}b");
});

test("a prompt is said with how sure it is, and never with what could disguise it", () => {
  assert.equal(inputRequestText({ prompt: "Password: ", sure: "certain" }), "waits for input: Password:");
  assert.equal(inputRequestText({ prompt: "", sure: "likely" }), "seems to wait for input");
  assert.equal(inputRequestText({ prompt: "a\u202eb", sure: "certain" }), "waits for input: a\\u{202e}b");
});

test("a wait is urgent when it is secret or certain, and not in a person's own terminal", () => {
  const asks = { secret: false, sure: "likely" as const };
  assert.equal(needsInput(asks, agent), false);
  assert.equal(needsInput({ ...asks, sure: "certain" }, agent), true);
  assert.equal(needsInput({ ...asks, secret: true }, agent), true);
  assert.equal(needsInput({ ...asks, secret: true }, person), false);
  assert.equal(needsInput(null, agent), false);
});

const shown: StatusInput = { terminal: terminal(), typed: null, lost: false, begin: 0, full: false, refused: "", larger: "" };
const said = (facts: Partial<StatusInput>): string[] => statusMessages({ ...shown, ...facts }).map((remark) => remark.text);

test("above the screen stands what a person must know, the most urgent first", () => {
  const asks = { prompt: "Password: ", sure: "certain" as const, secret: true, since: 0 };
  const taken = { by: "a person", holds: true };
  assert.deepEqual(said({}), []);
  assert.deepEqual(said({ terminal: terminal({ asks, taken }) }), [
    "Waits for input: Password: — only you can answer; it is not recorded",
    "You are in control. Agents cannot type until you release",
  ]);
  assert.deepEqual(said({ typed: { at: 0, by: "claude-code", person: false, text: "ls\r", offset: 0 } }), ["claude-code typed “ls”"]);
  assert.deepEqual(said({ typed: { at: 0, by: "claude-code", person: false, text: null, offset: 0 } }), ["claude-code typed something it does not show"]);
  assert.match(said({ terminal: terminal({ first: 5000, lines_dropped: 12 }), begin: 5000 })[0] ?? "", /^The first 5\.0 kB, 12 lines were dropped/);
  assert.match(said({ begin: 100 })[0] ?? "", /Older output has left the screen/);
  assert.match(said({ terminal: terminal({ forgotten: true, running: false }) })[0] ?? "", /deleted/);
});

test("an age is rough and steady", () => {
  assert.deepEqual([4000, 90_000, 7_300_000, 200_000_000].map(roughDuration), ["4 s", "1 min", "2 h", "2 d"]);
});

test("the Enter that ends what is typed is a key, every other control character a warning", () => {
  assert.deepEqual(splitEnter("ls\r"), { text: "ls", enter: true });
  assert.deepEqual(splitEnter("ls"), { text: "ls", enter: false });
  assert.deepEqual(splitEnter("a\rb\r"), { text: "a\rb", enter: true });
});
