/** Splits a line of code into pieces: highlighting, changed words, escaped hidden characters; pure. */
import type { Span } from "./sequenceDiff.ts";
import { type Piece, visiblePieces } from "./visibleText.ts";

/** Start, end and class names. */
export type Token = readonly [number, number, string];

export interface CodePiece extends Piece {
  readonly colour: string;
  readonly marked: boolean;
}

/** Bytes that are not UTF-8 are private-use characters in a proposal; the low byte is the value. */
export const RAW_BYTES = /[\uef80-\uefff]/gu;

/** Visible pieces of a text; in a file that is not UTF-8, also its raw bytes. */
export function visibleCodePieces(text: string, bytes: boolean): Piece[] {
  return bytes ? visiblePieces(text).flatMap((piece) => (piece.flag ? piece : withBytes(piece.text))) : visiblePieces(text);
}

export function codePieces(text: string, tokens: readonly Token[] = [], marks: readonly Span[] = [], bytes = false): CodePiece[] {
  const cuts = new Set([0, text.length]);
  for (const [from, to] of [...tokens, ...marks]) {
    if (from > 0 && from < text.length) cuts.add(from);
    if (to > 0 && to < text.length) cuts.add(to);
  }
  const places = [...cuts].sort((one, other) => one - other);
  const pieces: CodePiece[] = [];
  let token = 0;
  let mark = 0;
  for (let at = 0; at + 1 < places.length; at++) {
    const from = places[at] ?? 0;
    while (token < tokens.length && (tokens[token]?.[1] ?? 0) <= from) token++;
    while (mark < marks.length && (marks[mark]?.[1] ?? 0) <= from) mark++;
    const colour = (tokens[token]?.[0] ?? Infinity) <= from ? (tokens[token]?.[2] ?? "") : "";
    const marked = (marks[mark]?.[0] ?? Infinity) <= from;
    for (const piece of visibleCodePieces(text.slice(from, places[at + 1]), bytes)) pieces.push({ ...piece, colour, marked });
  }
  return pieces;
}

function withBytes(text: string): Piece[] {
  return text
    .split(/([\uef80-\uefff])/u)
    .filter((part) => part)
    .map((part) => (part.match(RAW_BYTES) && part.length === 1 ? byte(part.charCodeAt(0) & 0xff) : { text: part }));
}

function byte(value: number): Piece {
  const digits = value.toString(16);
  return { text: `\\x${digits}`, flag: `The byte 0x${digits.toUpperCase()}, which is not UTF-8` };
}
