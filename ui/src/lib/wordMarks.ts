/** The changed words of removed lines and the added lines beside them; pure. */
import { diffSequences, type Span } from "./sequenceDiff.ts";

/** Longer lines and blocks get no word diff. */
const WORDS_IN = 600;
const WORDS_OF_LINES = 40;

export interface Marks {
  readonly old: readonly Span[];
  readonly new: readonly Span[];
}
const NONE: Marks = { old: [], new: [] };

/** The changed characters of each pair of lines, in order. */
export function blockMarks(old: readonly string[], fresh: readonly string[]): Marks[] {
  const compared = Math.max(old.length, fresh.length) <= WORDS_OF_LINES ? Math.min(old.length, fresh.length) : 0;
  return old.slice(0, compared).map((line, at) => wordMarks(line, fresh[at] ?? ""));
}

/** Changed characters of two lines, by words; none if the lines have little in common. */
function wordMarks(old: string, fresh: string): Marks {
  if (old.length > WORDS_IN || fresh.length > WORDS_IN) return NONE;
  const [left, right] = [words(old), words(fresh)];
  const found = diffSequences(left, right);
  const marks = { old: found.map((one) => letters(left, one.old)).filter(wide), new: found.map((one) => letters(right, one.new)).filter(wide) };
  return covered(marks.old) * 2 > old.trim().length || covered(marks.new) * 2 > fresh.trim().length ? NONE : marks;
}

function words(line: string): string[] {
  return line.replace(/\n$/, "").match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? [];
}

function letters(all: readonly string[], [from, to]: Span): Span {
  const start = all.slice(0, from).join("").length;
  return [start, start + all.slice(from, to).join("").length];
}

function wide([from, to]: Span): boolean {
  return to > from;
}

function covered(marks: readonly Span[]): number {
  return marks.reduce((sum, [from, to]) => sum + to - from, 0);
}
