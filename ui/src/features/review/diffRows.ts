/**
 * A proposal as rows: hunks and the lines between them, unified or side by side; pure.
 *
 * Computes line numbers, pairs and changed words. The choices are in lib/hunks.ts.
 */
import { chosenText, CONTEXT, type Hunk, type HunkChoice, type ProposedFile, splitLines } from "../../lib/hunks.ts";
import { diffSequences, type SequenceChange, type Span } from "../../lib/sequenceDiff.ts";
import { blockMarks } from "../../lib/wordMarks.ts";

export interface DiffRow {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** Counted from 1. */
  readonly old: number | null;
  readonly new: number | null;
  /** Has no newline at its end. */
  readonly open: boolean;
  /** The changed characters, for a line that is paired with its old version. */
  readonly marks: readonly Span[];
}

export interface RowPair {
  readonly left: DiffRow | null;
  readonly right: DiffRow | null;
}

/** The unchanged lines between two hunks, or at either end; the middle is folded. */
export interface Gap {
  readonly top: readonly DiffRow[];
  readonly folded: Span;
  readonly bottom: readonly DiffRow[];
}

/** Shorter gaps are not folded. */
const WORTH_FOLDING = 3;

/** The rows of a hunk: as proposed, or as edited. */
export function hunkRows(whole: ProposedFile, at: number, choice: HunkChoice): DiffRow[] {
  const hunk = whole.hunks[at];
  if (!hunk) return [];
  const old = whole.before.slice(...hunk.old);
  if (typeof choice === "string" || "without" in choice) return rows(old, whole.after.slice(...hunk.new), hunk.changes.map((change) => moved(change, hunk)), hunk);
  const own = splitLines(chosenText(whole, at, choice));
  return rows(old, own, diffSequences(old, own), hunk);
}

/** The row count of a hunk, as proposed. */
export function hunkSize({ old, changes: all }: Hunk): number {
  return all.reduce((sum, change) => sum + change.new[1] - change.new[0], old[1] - old[0]);
}

/** The gap before hunk `at`; after the last hunk, the gap to the end of the file. */
export function gapAt({ before, hunks }: ProposedFile, at: number): Gap {
  const previous = hunks[at - 1];
  const from = previous?.old[1] ?? 0;
  const to = hunks[at]?.old[0] ?? before.length;
  const shift = previous ? previous.new[1] - previous.old[1] : 0;
  const top = Math.min(to, previous ? from + CONTEXT : from);
  const bottom = Math.max(top, hunks[at] ? to - CONTEXT : to);
  const folds = bottom - top >= WORTH_FOLDING;
  return {
    top: contextRows(before, [from, folds ? top : to], shift),
    folded: folds ? [top, bottom] : [to, to],
    bottom: folds ? contextRows(before, [bottom, to], shift) : [],
  };
}

/** Lines that are the same on both sides. */
export function contextRows(before: readonly string[], [from, to]: Span, shift: number): DiffRow[] {
  return before.slice(from, to).map((line, at) => row("same", line, from + at, from + at + shift));
}

/** The difference of new and old line numbers before hunk `at`. */
export function lineShift({ hunks }: ProposedFile, at: number): number {
  const previous = hunks[at - 1];
  return previous ? previous.new[1] - previous.old[1] : 0;
}

/** Side by side: removed lines are paired with the added ones that follow. */
export function pairRows(all: readonly DiffRow[]): RowPair[] {
  const found: RowPair[] = [];
  let removed: DiffRow[] = [];
  let added: DiffRow[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) found.push({ left: removed[at] ?? null, right: added[at] ?? null });
    removed = [];
    added = [];
  };
  for (const one of all) {
    if (one.kind === "added") added.push(one);
    else {
      if (added.length || one.kind === "same") flush();
      if (one.kind === "removed") removed.push(one);
      else found.push({ left: one, right: one });
    }
  }
  flush();
  return found;
}

function rows(old: readonly string[], fresh: readonly string[], all: readonly SequenceChange[], { old: [oldFrom], new: [newFrom] }: Hunk): DiffRow[] {
  const found: DiffRow[] = [];
  let done = 0;
  let shift = newFrom;
  for (const change of all) {
    for (; done < change.old[0]; done++) found.push(row("same", old[done] ?? "", oldFrom + done, shift + done));
    found.push(...changed(old.slice(...change.old), fresh.slice(...change.new), oldFrom + change.old[0], newFrom + change.new[0]));
    done = change.old[1];
    shift = newFrom + change.new[1] - change.old[1];
  }
  for (; done < old.length; done++) found.push(row("same", old[done] ?? "", oldFrom + done, shift + done));
  return found;
}

function changed(old: readonly string[], fresh: readonly string[], oldFrom: number, newFrom: number): DiffRow[] {
  const words = blockMarks(old, fresh);
  return [
    ...old.map((line, at) => row("removed", line, oldFrom + at, null, words[at]?.old)),
    ...fresh.map((line, at) => row("added", line, null, newFrom + at, words[at]?.new)),
  ];
}

/** The change, relative to the start of its hunk. */
function moved({ old, new: fresh }: SequenceChange, hunk: Hunk): SequenceChange {
  const [a, b] = [hunk.old[0], hunk.new[0]];
  return { old: [old[0] - a, old[1] - a], new: [fresh[0] - b, fresh[1] - b] };
}

function row(kind: DiffRow["kind"], line: string, old: number | null, fresh: number | null, marks: readonly Span[] = []): DiffRow {
  const open = !line.endsWith("\n");
  return { kind, text: open ? line : line.slice(0, -1), old: old === null ? null : old + 1, new: fresh === null ? null : fresh + 1, open, marks };
}
