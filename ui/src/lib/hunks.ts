/**
 * A proposed file in hunks, the choice for each, and the resulting file; pure.
 *
 * All kept is the proposal, all rejected is the old file, to the byte. Rows are in review/diffRows.ts.
 */
import { parseUnifiedDiff } from "./parseDiff.ts";
import { diffSequences, type SequenceChange, type Span } from "./sequenceDiff.ts";

/** Keep the proposal, reject it, reject some of its changed lines (by `lineName`), or use the person's text. */
export type HunkChoice = "keep" | "reject" | { readonly without: ReadonlySet<string> } | { readonly text: string };

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
  /** Hunks of which only some lines are kept. */
  readonly partly: number;
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
  if (choice === "keep") return after.slice(...hunk.new).join("");
  if (choice === "reject") return before.slice(...hunk.old).join("");
  return "text" in choice ? choice.text : selectedText({ before, after }, hunk, choice.without);
}

/** The name of a changed line: removed ones are counted in the old file, added ones in the proposal, from 1. */
export function lineName(side: "old" | "new", number: number): string {
  return `${side}-${number}`;
}

/** The names of all changed lines of a hunk. */
export function changedLines({ changes }: Hunk): string[] {
  return changes.flatMap(({ old, new: fresh }) => [...namesIn("old", old), ...namesIn("new", fresh)]);
}

function namesIn(side: "old" | "new", [from, to]: Span): string[] {
  return Array.from({ length: to - from }, (_, at) => lineName(side, from + at + 1));
}

/** Of each change the rejected removals stay, and then the additions that are kept follow. */
function selectedText({ before, after }: Pick<ProposedFile, "before" | "after">, hunk: Hunk, without: ReadonlySet<string>): string {
  const parts: string[] = [];
  let done = hunk.old[0];
  for (const { old, new: fresh } of hunk.changes) {
    parts.push(...before.slice(done, old[0]));
    parts.push(...before.slice(...old).filter((_, at) => without.has(lineName("old", old[0] + at + 1))));
    parts.push(...after.slice(...fresh).filter((_, at) => !without.has(lineName("new", fresh[0] + at + 1))));
    done = old[1];
  }
  parts.push(...before.slice(done, hunk.old[1]));
  // A line without a newline at its end can only be the last one.
  return parts.map((line, at) => (at < parts.length - 1 && !line.endsWith("\n") ? `${line}\n` : line)).join("");
}

/** The same file with the changes of one hunk as hunks of their own. */
export function splitHunk(whole: ProposedFile, at: number): ProposedFile {
  const hunk = whole.hunks[at];
  if (!hunk) return whole;
  return { ...whole, hunks: [...whole.hunks.slice(0, at), ...hunk.changes.map((change) => around([change])), ...whole.hunks.slice(at + 1)] };
}

/** One choice for each part of a split hunk. */
export function splitChoice(hunk: Hunk, choice: HunkChoice): HunkChoice[] {
  if (typeof choice !== "object" || "text" in choice) return hunk.changes.map(() => choice);
  return hunk.changes.map((change) => lineChoice(around([change]), choice.without));
}

/** The choice that rejects these lines of a hunk. */
export function lineChoice(hunk: Hunk, without: ReadonlySet<string>): HunkChoice {
  const all = changedLines(hunk);
  const rejected = all.filter((name) => without.has(name));
  return rejected.length === 0 ? "keep" : rejected.length === all.length ? "reject" : { without: new Set(rejected) };
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

/** Counts hunks of the proposal as the daemon has them: the parts of a split one count together. */
export function tallyChoices({ hunks }: ProposedFile, choices: readonly HunkChoice[], unsplit: readonly Hunk[] = hunks): Tally {
  const fates = unsplit.map((one) => fateOf(hunks.flatMap((hunk, at) => (within(hunk, one) ? [choices[at] ?? "keep"] : []))));
  const count = (fate: Fate) => fates.filter((one) => one === fate).length;
  return { hunks: unsplit.length, kept: count("kept"), partly: count("partly"), rejected: count("rejected"), edited: count("edited") };
}

type Fate = "kept" | "partly" | "rejected" | "edited";

function fateOf(choices: readonly HunkChoice[]): Fate {
  if (choices.some((choice) => typeof choice === "object" && "text" in choice)) return "edited";
  if (choices.every((choice) => choice === "keep")) return "kept";
  return choices.every((choice) => choice === "reject") ? "rejected" : "partly";
}

function within(part: Hunk, hunk: Hunk): boolean {
  return hunk.old[0] <= part.old[0] && part.old[1] <= hunk.old[1] && hunk.new[0] <= part.new[0] && part.new[1] <= hunk.new[1];
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
