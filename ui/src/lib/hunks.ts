/**
 * A proposed file in hunks, the choice for each, and the resulting file; pure.
 *
 * All kept is the proposal, all rejected is the old file, to the byte. Rows are in review/diffRows.ts.
 */
import { parseUnifiedDiff } from "./parseDiff.ts";
import { diffSequences, type SequenceChange, type Span } from "./sequenceDiff.ts";

/** Keep the proposal, reject it, or use the person's text. */
export type HunkChoice = "keep" | "reject" | { readonly text: string };

export interface Hunk {
  /** Line ranges in the old file and in the proposal; counted from 0. */
  readonly old: Span;
  readonly new: Span;
  /** Its changes, which are close together. */
  readonly changes: readonly SequenceChange[];
}

/** The old file and the proposal, as lines with their line endings. */
export interface ProposedFile {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly hunks: readonly Hunk[];
}

export interface Tally {
  readonly hunks: number;
  readonly kept: number;
  readonly rejected: number;
  readonly edited: number;
}

/** Context lines on either side: changes whose contexts touch form one hunk. */
export const CONTEXT = 3;

/** Uses the hunks of the daemon's diff, so that both sides count the same; computes them if that diff does not fit. */
export function splitIntoHunks(before: string, after: string, diff = ""): ProposedFile {
  const texts = { before: splitLines(before), after: splitLines(after) };
  const theirs = { ...texts, hunks: hunksOf(diff) };
  return theirs.hunks.length && fits(theirs) ? theirs : { ...texts, hunks: grouped(diffSequences(texts.before, texts.after)) };
}

/** The resulting file. */
export function assembleFile({ before, after, hunks }: ProposedFile, choices: readonly HunkChoice[]): string {
  const parts: string[] = [];
  let done = 0;
  hunks.forEach((hunk, at) => {
    parts.push(before.slice(done, hunk.old[0]).join(""), chosenText({ before, after, hunks }, at, choices[at] ?? "keep"));
    done = hunk.old[1];
  });
  return parts.join("") + before.slice(done).join("");
}

/** The text that a choice puts in place of a hunk. */
export function chosenText({ before, after, hunks }: ProposedFile, at: number, choice: HunkChoice): string {
  const hunk = hunks[at];
  if (!hunk) return "";
  if (typeof choice === "object") return choice.text;
  return choice === "keep" ? after.slice(...hunk.new).join("") : before.slice(...hunk.old).join("");
}

/** The edit of a hunk as lines; the final newline is added if the person left it out. */
export function editedChoice(whole: ProposedFile, at: number, typed: string): HunkChoice {
  const hunk = whole.hunks[at];
  const kept = chosenText(whole, at, "keep");
  const last = (hunk?.old[1] ?? 0) === whole.before.length;
  const open = last && kept !== "" && !kept.endsWith("\n");
  return { text: typed === "" || open ? typed : `${typed}\n` };
}

/** An edit without a change becomes "keep" or "reject". */
export function normalizeChoice(whole: ProposedFile, at: number, choice: HunkChoice): HunkChoice {
  if (typeof choice === "string") return choice;
  const text = chosenText(whole, at, choice);
  if (text === chosenText(whole, at, "keep")) return "keep";
  return text === chosenText(whole, at, "reject") ? "reject" : choice;
}

export function tallyChoices({ hunks }: ProposedFile, choices: readonly HunkChoice[]): Tally {
  const count = (is: (choice: HunkChoice) => boolean) => hunks.filter((_, at) => is(choices[at] ?? "keep")).length;
  return {
    hunks: hunks.length,
    kept: count((choice) => choice === "keep"),
    rejected: count((choice) => choice === "reject"),
    edited: count((choice) => typeof choice === "object"),
  };
}

/** All removed and added text. */
export function changedText({ before, after, hunks }: ProposedFile): string {
  return hunks.map(({ old, new: fresh }) => before.slice(...old).join("") + after.slice(...fresh).join("")).join("");
}

/** Lines with their ends; only `\n` ends one. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
}

/** Converts CR LF to newlines if all lines use it, for display, editing and comparison. */
export function normalizeLineEnds(before: string, after: string): { readonly before: string; readonly after: string; readonly crlf: boolean } {
  const crlf = [before, after].every((text) => isCrlf(text) || !text.includes("\n")) && (isCrlf(before) || isCrlf(after));
  return crlf ? { before: before.replaceAll("\r\n", "\n"), after: after.replaceAll("\r\n", "\n"), crlf } : { before, after, crlf };
}

/** Restores CR LF. */
export function restoreLineEnds(text: string, crlf: boolean): string {
  return crlf ? text.replaceAll("\n", "\r\n") : text;
}

function isCrlf(text: string): boolean {
  return text.includes("\n") && !/(^|[^\r])\n/.test(text);
}

function grouped(all: readonly SequenceChange[]): Hunk[] {
  const groups: SequenceChange[][] = [];
  for (const change of all) {
    const last = groups.at(-1)?.at(-1);
    if (last && change.old[0] - last.old[1] <= 2 * CONTEXT) groups.at(-1)?.push(change);
    else groups.push([change]);
  }
  return groups.map(around);
}

function around(group: readonly SequenceChange[]): Hunk {
  const first = group[0] as SequenceChange;
  const last = group.at(-1) as SequenceChange;
  return { old: [first.old[0], last.old[1]], new: [first.new[0], last.new[1]], changes: group };
}

/** The hunks of a unified diff. */
function hunksOf(diff: string): Hunk[] {
  const groups: SequenceChange[][] = [];
  let place = { old: 0, new: 0 };
  for (const line of parseUnifiedDiff(diff)) {
    if (line.kind === "hunk") {
      groups.push([]);
      place = startOf(line.text);
    } else if (line.kind === "same") place = { old: place.old + 1, new: place.new + 1 };
    else if (line.kind !== "note") place = grown(groups.at(-1) ?? [], line.kind === "added", place);
  }
  return groups.filter((group) => group.length).map(around);
}

function startOf(head: string): { old: number; new: number } {
  const [, old = "0", olds = "1", fresh = "0", news = "1"] = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(head) ?? [];
  return { old: Number(old) - (olds === "0" ? 0 : 1), new: Number(fresh) - (news === "0" ? 0 : 1) };
}

/** Extends the change that ends here, or starts a new one. */
function grown(group: SequenceChange[], added: boolean, { old, new: fresh }: { old: number; new: number }): { old: number; new: number } {
  const next = added ? { old, new: fresh + 1 } : { old: old + 1, new: fresh };
  const last = group.at(-1);
  if (last && last.old[1] === old && last.new[1] === fresh) group[group.length - 1] = { old: [last.old[0], next.old], new: [last.new[0], next.new] };
  else group.push({ old: [old, next.old], new: [fresh, next.new] });
  return next;
}

/** Checks that everything outside the changes is equal on both sides. */
function fits({ before, after, hunks }: ProposedFile): boolean {
  let old = 0;
  let fresh = 0;
  for (const change of hunks.flatMap((hunk) => hunk.changes)) {
    if (!same(before, after, [old, change.old[0]], [fresh, change.new[0]])) return false;
    [old, fresh] = [change.old[1], change.new[1]];
  }
  return same(before, after, [old, before.length], [fresh, after.length]);
}

function same(before: readonly string[], after: readonly string[], [a, aEnd]: Span, [b, bEnd]: Span): boolean {
  if (aEnd - a !== bEnd - b || aEnd < a) return false;
  for (let at = 0; at < aEnd - a; at++) if (before[a + at] !== after[b + at]) return false;
  return true;
}
