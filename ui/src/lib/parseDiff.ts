/** Parses a unified diff into rows with line numbers; pure. */
import type { Span } from "./sequenceDiff.ts";
import { blockMarks } from "./wordMarks.ts";

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "hunk" | "note";
  readonly text: string;
  readonly old: number | null;
  readonly new: number | null;
}

export interface SplitRow {
  readonly left: DiffLine | null;
  readonly right: DiffLine | null;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/;

/** The lines of every hunk; file headers are dropped, since the path is shown above. */
export function parseUnifiedDiff(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let before = 0;
  let after = 0;
  let inside = false;
  for (const raw of withoutLast(diff.split("\n"))) {
    const hunk = HUNK.exec(raw);
    if (hunk) {
      inside = true;
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      lines.push({ kind: "hunk", text: raw, old: null, new: null });
    } else if (inside) {
      const text = raw.slice(1);
      if (raw.startsWith("+")) lines.push({ kind: "added", text, old: null, new: after++ });
      else if (raw.startsWith("-")) lines.push({ kind: "removed", text, old: before++, new: null });
      else if (raw.startsWith("\\")) lines.push({ kind: "note", text: text.trim(), old: null, new: null });
      else lines.push({ kind: "same", text, old: before++, new: after++ });
    }
  }
  return lines;
}

/** `line 18`, and the function that the hunk is in, from the head of a hunk. */
export function hunkPlace(head: string): string {
  const [, start = "", of = ""] = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(head) ?? [];
  return [`line ${start}`, of.trim()].filter(Boolean).join(" · ");
}

/** The changed words of the lines that have a counterpart. */
export function diffMarks(lines: readonly DiffLine[]): Map<DiffLine, readonly Span[]> {
  const marks = new Map<DiffLine, readonly Span[]>();
  for (let at = 0; at < lines.length; ) {
    const removed = runOf(lines, at, "removed");
    const added = runOf(lines, at + removed.length, "added");
    blockMarks(texts(removed), texts(added)).forEach((pair, index) => {
      const [left, right] = [removed[index], added[index]];
      if (left && right) marks.set(left, pair.old).set(right, pair.new);
    });
    at += removed.length + added.length || 1;
  }
  return marks;
}

function runOf(lines: readonly DiffLine[], from: number, kind: DiffLine["kind"]): DiffLine[] {
  let to = from;
  while (lines[to]?.kind === kind) to++;
  return lines.slice(from, to);
}

function texts(lines: readonly DiffLine[]): string[] {
  return lines.map(({ text }) => text);
}

/** Side by side: removed lines are paired with the added lines that follow. */
export function splitRows(lines: readonly DiffLine[]): SplitRow[] {
  const rows: SplitRow[] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++)
      rows.push({ left: removed[at] ?? null, right: added[at] ?? null });
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.kind === "removed") {
      if (added.length) flush();
      removed.push(line);
    } else if (line.kind === "added") added.push(line);
    else if (line.kind === "note") noteBeside(removed, added, line);
    else {
      flush();
      rows.push({ left: line, right: line });
    }
  }
  flush();
  return rows;
}

function noteBeside(removed: DiffLine[], added: DiffLine[], note: DiffLine): void {
  (added.length ? added : removed).push(note);
}

function withoutLast(lines: string[]): string[] {
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
