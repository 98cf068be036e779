import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeFrame } from "../api/terminalSocket.ts";
import { OutputTail, textOf } from "./outputTail.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const shown = (tail: OutputTail): string => tail.blocks.map((block) => textOf(block.pieces)).join("") + textOf(tail.open);

test("frames in any cut give the same text as the whole", () => {
  const text = "größe 10%\rgröße 100%\n\x1b[32m✓\x1b[0m ok\nlast";
  const whole = bytes(text);
  for (let at = 0; at <= whole.length; at++) {
    const tail = new OutputTail();
    tail.take([{ offset: 0, bytes: whole.subarray(0, at) }]);
    tail.take([{ offset: at, bytes: whole.subarray(at) }]);
    assert.equal(shown(tail), "größe 100%\n✓ ok\nlast", `cut at ${at}`);
  }
});

test("bytes that come twice are shown once", () => {
  const tail = new OutputTail();
  tail.take([{ offset: 0, bytes: bytes("one\ntwo") }]);
  tail.take([{ offset: 0, bytes: bytes("one\n") }, { offset: 4, bytes: bytes("two\nthree\n") }]);
  assert.equal(shown(tail), "one\ntwo\nthree\n");
});

test("a flood keeps its end and says where it begins", () => {
  const line = "0123456789012345678901234567890123456789012345678\n";
  const chunk = bytes(line.repeat(1000));
  const tail = new OutputTail();
  const frames = Array.from({ length: 100 }, (_, at) => ({ offset: at * chunk.length, bytes: chunk }));
  tail.take(frames);
  const lines = tail.blocks.reduce((sum, block) => sum + block.lines, 0);
  assert.ok(lines <= 5000 && lines > 4500, `${lines} lines`);
  assert.equal(tail.end, 100 * chunk.length);
  assert.equal(tail.start, tail.end - lines * line.length);
});

test("a line without an end is kept in bounded pieces", () => {
  const tail = new OutputTail();
  const chunk = bytes("é".repeat(50_000));
  for (let at = 0; at < 60; at++) tail.take([{ offset: at * chunk.length, bytes: chunk }]);
  assert.ok(shown(tail).length < 4_000_000);
  assert.ok(!shown(tail).includes("\ufffd"));
});

test("a hole in the offsets begins anew after it", () => {
  const tail = new OutputTail();
  tail.take([{ offset: 0, bytes: bytes("one\n") }]);
  tail.take([{ offset: 100, bytes: bytes("far\n") }]);
  assert.equal(shown(tail), "far\n");
  assert.equal(tail.start, 100);
});

test("a frame carries its offset in its first eight bytes", () => {
  const data = new Uint8Array([0, 0, 0, 1, 0, 0, 0, 2, 104, 105]);
  assert.deepEqual(decodeFrame(data.buffer), { offset: 2 ** 32 + 2, bytes: bytes("hi") });
});

test("colours stay, go on over lines and frames, and end where they are reset", () => {
  const tail = new OutputTail();
  const text = "\x1b[1;31mFAILED\x1b[0m x\n\x1b[32mone\ntwo\x1b[39m three\n\x1b[38;5;208mo\x1b[48;2;1;2;3mp\x1b[m\n10%\r\x1b[7m100%\n";
  const whole = bytes(text);
  tail.take([{ offset: 0, bytes: whole.subarray(0, 30) }]);
  tail.take([{ offset: 30, bytes: whole.subarray(30) }]);
  assert.equal(shown(tail), "FAILED x\none\ntwo three\nop\n100%\n");
  const styled = tail.blocks.flatMap(({ pieces }) => pieces).filter(({ style }) => style);
  assert.deepEqual(styled, [
    { text: "FAILED", style: "bold|fg=var(--ansi-red)" },
    { text: "one", style: "fg=var(--ansi-green)" },
    { text: "two", style: "fg=var(--ansi-green)" },
    { text: "o", style: "fg=rgb(255 135 0)" },
    { text: "p", style: "fg=rgb(255 135 0)|bg=rgb(1 2 3)" },
    { text: "100%", style: "inverse" },
  ]);
});
