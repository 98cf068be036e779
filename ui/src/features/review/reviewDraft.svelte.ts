/**
 * An unsent review: the choice for each hunk, edits and line comments.
 *
 * Drafts survive selecting another question; a limited number is kept while the page is open.
 */
import type { Comment, DiffPreview, ProposalView } from "../../api/types.ts";
import {
  assembleFile,
  changedLines,
  chosenText,
  editedChoice,
  type HunkChoice,
  lineChoice,
  lineName,
  normalizeChoice,
  normalizeLineEnds,
  type ProposedFile,
  restoreLineEnds,
  splitChoice,
  splitHunk,
  splitIntoHunks,
  type Tally,
  tallyChoices,
} from "../../lib/hunks.ts";
import { diffSequences, originalIndex } from "../../lib/sequenceDiff.ts";

/** A line that can be commented on: a line of the proposal, or a removed one. */
export interface LinePosition {
  readonly side: "old" | "new";
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
}

export interface DraftComment extends LinePosition {
  readonly said: string;
}

/** The preview's diff and notes. */
export type ShownDiff = Pick<DiffPreview, "diff" | "notes">;
/** Characters of a removed line that a comment quotes. */
const QUOTED = 80;

export class ReviewDraft {
  readonly path: string;
  readonly creates: boolean;
  readonly deletes: boolean;
  /** The file is not UTF-8. */
  readonly bytes: boolean;
  private readonly proposal: ProposalView;
  private readonly crlf: boolean;
  private readonly asProposed: ProposedFile;
  /** The reviewed version before any hunk was split: the proposal, or the person's own version of the file. */
  private unsplit = $state.raw<ProposedFile>({ before: [], after: [], hunks: [] });
  whole = $state.raw<ProposedFile>({ before: [], after: [], hunks: [] });
  choices = $state.raw<readonly HunkChoice[]>([]);
  remarks = $state.raw<readonly DraftComment[]>([]);
  /** The whole file was edited, not single hunks. */
  rewritten = $state(false);
  private readonly typed = new Map<number, string>();

  constructor(proposal: ProposalView, { diff, notes }: ShownDiff) {
    const { before, after, crlf } = normalizeLineEnds(proposal.before ?? "", proposal.after ?? "");
    this.proposal = proposal;
    this.bytes = notes.some((note) => note.includes("not UTF-8"));
    this.path = proposal.path;
    this.creates = proposal.before === null;
    this.deletes = proposal.after === null;
    this.crlf = crlf;
    this.asProposed = splitIntoHunks(before, after, crlf ? diff.replaceAll("\r\n", "\n") : diff);
    this.take(this.asProposed);
  }

  private take(whole: ProposedFile): void {
    this.unsplit = this.whole = whole;
    this.choices = [];
    this.typed.clear();
  }

  readonly tally = $derived<Tally>(tallyChoices(this.whole, this.choices, this.unsplit.hunks));
  /** A hunk is split. */
  readonly divided = $derived(this.whole !== this.unsplit);
  /** The result equals the proposal. */
  readonly asAsked = $derived(!this.rewritten && this.tally.kept === this.tally.hunks);
  readonly touched = $derived(!this.asAsked || this.remarks.length > 0);
  /** Every hunk is rejected. */
  readonly refused = $derived(this.tally.hunks > 0 && this.tally.rejected === this.tally.hunks);
  readonly text = $derived(assembleFile(this.whole, this.choices));

  /** The content to write, with the file's original line endings. */
  get content(): string {
    return restoreLineEnds(this.text, this.crlf);
  }

  get comments(): Comment[] {
    return this.remarks.map((remark) => ({ line: this.lineOf(remark), text: spoken(remark) }));
  }

  /** The draft belongs to this proposal. */
  isOf({ before, after }: ProposalView): boolean {
    return this.proposal.before === before && this.proposal.after === after;
  }

  choice(at: number): HunkChoice {
    return this.choices[at] ?? "keep";
  }

  choose(at: number, choice: HunkChoice): void {
    if (this.deletes || at >= this.whole.hunks.length) return;
    const made = normalizeChoice(this.whole, at, choice);
    this.choices = this.whole.hunks.map((_, other) => (other === at ? made : this.choice(other)));
  }

  /** A hunk of several changes that the person did not edit. */
  isDivisible(at: number): boolean {
    const choice = this.choice(at);
    return !this.deletes && (this.whole.hunks[at]?.changes.length ?? 0) > 1 && (typeof choice === "string" || "without" in choice);
  }

  /** Makes each change of a hunk a hunk of its own; what was chosen stays. */
  divide(at: number): void {
    const hunk = this.whole.hunks[at];
    if (!hunk || !this.isDivisible(at)) return;
    const more = hunk.changes.length - 1;
    this.choices = this.whole.hunks.flatMap((_, other) => (other === at ? splitChoice(hunk, this.choice(at)) : [this.choice(other)]));
    const typed = [...this.typed].filter(([other]) => other !== at);
    this.typed.clear();
    for (const [other, text] of typed) this.typed.set(other > at ? other + more : other, text);
    this.whole = splitHunk(this.whole, at);
  }

  /** Whether a changed line will not be written as proposed. */
  rejects(at: number, line: Pick<LinePosition, "side" | "number">): boolean {
    const choice = this.choice(at);
    if (typeof choice === "string") return choice === "reject";
    return "without" in choice && choice.without.has(lineName(line.side, line.number));
  }

  /** Keeps or rejects one changed line of a hunk. */
  toggle(at: number, line: Pick<LinePosition, "side" | "number">): void {
    const hunk = this.whole.hunks[at];
    const choice = this.choice(at);
    if (!hunk || this.deletes || (typeof choice === "object" && "text" in choice)) return;
    const name = lineName(line.side, line.number);
    const without = new Set(typeof choice === "object" ? choice.without : choice === "reject" ? changedLines(hunk) : []);
    if (!without.delete(name)) without.add(name);
    this.choose(at, lineChoice(hunk, without));
  }

  /** Replaces a hunk by the person's text. */
  write(at: number, typed: string): void {
    this.typed.set(at, typed);
    this.choose(at, editedChoice(this.whole, at, typed));
  }

  /** The initial text of the editor for this hunk: the previous edit, else the proposal. */
  beginning(at: number): string {
    return this.typed.get(at) ?? chosenText(this.whole, at, "keep").replace(/\n$/, "");
  }

  /** Replaces the proposal by the person's version of the file, and splits it into hunks. */
  rewrite(text: string): void {
    if (text === this.text) return;
    this.rewritten = text !== this.asProposed.after.join("");
    this.take(this.rewritten ? splitIntoHunks(this.asProposed.before.join(""), text) : this.asProposed);
  }

  /** Back to the proposal; comments stay. */
  reset(): void {
    this.take(this.asProposed);
    this.rewritten = false;
  }

  say(place: LinePosition, said: string): void {
    const others = this.remarks.filter((remark) => lineKey(remark) !== lineKey(place));
    this.remarks = said.trim() ? [...others, { ...place, said: said.trim() }].sort((one, other) => this.lineOf(one) - this.lineOf(other)) : others;
  }

  saidAt(place: Pick<LinePosition, "side" | "number">): DraftComment | undefined {
    return this.remarks.find((remark) => lineKey(remark) === lineKey(place));
  }

  /** The line of the proposal that a comment refers to; for a removed line, the one in its place. */
  lineOf({ side, number }: LinePosition): number {
    if (this.deletes) return number;
    if (side === "old") {
      const hit = this.whole.hunks.flatMap((hunk) => hunk.changes).find(({ old }) => old[0] < number && number <= old[1]);
      return this.clamped((hit?.new[0] ?? number - 1) + 1);
    }
    return this.rewritten ? this.clamped(originalIndex(this.sinceProposed(), number - 1) + 1) : number;
  }

  private sinceProposed(): ReturnType<typeof diffSequences> {
    return diffSequences(this.asProposed.after, this.whole.after);
  }

  private clamped(line: number): number {
    return Math.max(1, Math.min(line, this.asProposed.after.length));
  }
}

export function lineKey({ side, number }: Pick<LinePosition, "side" | "number">): string {
  return `${side}-${number}`;
}

/** Unsent reviews, while the page is open. */
const drafts = new Map<string, ReviewDraft>();
const DRAFTS_MAX = 50;

/** The draft of this question, unless the file on disk changed back meanwhile. */
export function reviewDraftFor(approval: string, proposal: ProposalView, shown: ShownDiff): ReviewDraft {
  const known = drafts.get(approval);
  if (known && (proposal.changed !== null || known.isOf(proposal))) return known;
  for (const old of [...drafts.keys()].slice(0, Math.max(0, drafts.size + 1 - DRAFTS_MAX))) drafts.delete(old);
  const draft = new ReviewDraft(proposal, shown);
  drafts.set(approval, draft);
  return draft;
}

function spoken({ side, text, said }: DraftComment): string {
  if (side === "new") return said;
  const line = text.trim();
  return `About the removed line “${line.length > QUOTED ? `${line.slice(0, QUOTED)}…` : line}”: ${said}`;
}
