/**
 * The tail of a terminal's output: blocks of complete lines, and the current line.
 *
 * Bounded: old blocks are dropped, and the first kept offset is known. Frames of megabytes are decoded only as far as
 * they are kept.
 */
import { renderStyled } from "./ansi.ts";
import type { StyledText } from "./sgr.ts";

export interface OutputFrame {
  /** Absolute offset of its first byte. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export interface OutputBlock {
  /** Absolute offset of its first byte: its identity. */
  readonly from: number;
  readonly lines: number;
  readonly pieces: readonly StyledText[];
}

export function textOf(pieces: readonly StyledText[]): string {
  return pieces.map(({ text }) => text).join("");
}

/** The browser lays out a block as one text node. */
const BLOCK_LINES = 200;
/** Limits: enough to read, little enough to render. */
const KEPT_LINES = 5000;
const KEPT_BYTES = 2 << 20;
/** Lines without an end are cut at this length, so that memory is bounded. */
const LONGEST_LINE = 16 << 10;

const NEWLINE = 10;

export class OutputTail {
  blocks: readonly OutputBlock[] = [];
  /** The current line, as rendered now. */
  open: readonly StyledText[] = [];
  /** Offset after the last byte taken. */
  end = 0;
  private rest: Uint8Array = new Uint8Array(0);
  /** The style at the end of the blocks. */
  private style = "";
  private readonly decoder = new TextDecoder();

  /** Offset of the first byte that is still shown. */
  get start(): number {
    return this.blocks[0]?.from ?? this.end - this.rest.length;
  }

  /** Appends frames; after a gap the tail starts again. */
  take(frames: readonly OutputFrame[]): void {
    for (const { offset, bytes } of runs(lastOf(frames))) {
      const known = this.end - offset;
      if (known >= bytes.length && bytes.length > 0) continue;
      if (known < 0) this.restart(offset);
      this.push(known > 0 ? bytes.subarray(known) : bytes);
    }
    this.open = this.rest.length ? renderStyled(this.decoder.decode(this.rest), this.style).pieces : [];
    this.trim();
  }

  private restart(offset: number): void {
    this.blocks = [];
    this.style = "";
    this.rest = new Uint8Array(0);
    this.end = offset;
  }

  private push(bytes: Uint8Array): void {
    const all = this.rest.length ? joined([this.rest, bytes]) : bytes;
    const base = this.end - this.rest.length;
    let at = startOfLast(all, KEPT_LINES);
    const blocks = at > 0 ? [] : [...this.blocks];
    for (let cut = cutAfter(all, at, room(blocks)); cut.end > at; cut = cutAfter(all, at, room(blocks))) {
      append(blocks, base + at, cut.lines, this.render(all.subarray(at, cut.end)));
      at = cut.end;
    }
    this.blocks = blocks;
    this.rest = all.slice(at);
    this.end = base + all.length;
  }

  private render(bytes: Uint8Array): StyledText[] {
    const text = this.decoder.decode(bytes);
    const { pieces, style } = renderStyled(text.endsWith("\n") ? text : `${text}\n`, this.style);
    this.style = style;
    return pieces;
  }

  private trim(): void {
    let lines = this.blocks.reduce((sum, block) => sum + block.lines, 0);
    let first = 0;
    while (first < this.blocks.length - 1 && (lines > KEPT_LINES || this.end - (this.blocks[first]?.from ?? 0) > 2 * KEPT_BYTES))
      lines -= this.blocks[first++]?.lines ?? 0;
    if (first) this.blocks = this.blocks.slice(first);
  }
}

/** Of a flood, only the last frames are decoded. */
function lastOf(frames: readonly OutputFrame[]): readonly OutputFrame[] {
  let size = 0;
  let first = frames.length;
  while (first > 0 && size < KEPT_BYTES) size += frames[--first]?.bytes.length ?? 0;
  return frames.slice(first);
}

/** Concatenates contiguous frames. */
function runs(frames: readonly OutputFrame[]): OutputFrame[] {
  const groups: OutputFrame[][] = [];
  for (const frame of frames) {
    const last = groups.at(-1)?.at(-1);
    if (last && last.offset + last.bytes.length === frame.offset) groups.at(-1)?.push(frame);
    else groups.push([frame]);
  }
  return groups.map((group) => ({ offset: group[0]?.offset ?? 0, bytes: joined(group.map(({ bytes }) => bytes)) }));
}

/** The offset of the last `count` complete lines: earlier bytes are not decoded. */
function startOfLast(bytes: Uint8Array, count: number): number {
  let at = bytes.length;
  for (let line = 0; line <= count; line++) {
    at = at > 0 ? bytes.lastIndexOf(NEWLINE, at - 1) : -1;
    if (at < 0) return 0;
  }
  return at + 1;
}

function room(blocks: readonly OutputBlock[]): number {
  const last = blocks.at(-1);
  return last && last.lines < BLOCK_LINES ? BLOCK_LINES - last.lines : BLOCK_LINES;
}

/** Up to `limit` complete lines from `from` on; an overlong line counts as complete where it is cut. */
function cutAfter(bytes: Uint8Array, from: number, limit: number): { end: number; lines: number } {
  let end = from;
  let lines = 0;
  while (lines < limit) {
    const newline = bytes.indexOf(NEWLINE, end);
    const stop = newline >= 0 ? newline + 1 : bytes.length;
    if (stop - end > LONGEST_LINE) end = characterStart(bytes, end + LONGEST_LINE);
    else if (newline >= 0) end = stop;
    else break;
    lines++;
  }
  return { end, lines };
}

/** Not in the middle of a UTF-8 character. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  while (start > at - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

function append(blocks: OutputBlock[], from: number, lines: number, pieces: readonly StyledText[]): void {
  const last = blocks.at(-1);
  if (last && last.lines < BLOCK_LINES) blocks[blocks.length - 1] = { from: last.from, lines: last.lines + lines, pieces: [...last.pieces, ...pieces] };
  else blocks.push({ from, lines, pieces });
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1 && parts[0]) return parts[0];
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
