/** One-sentence summary of a review; pure. The text that the agent receives comes from the daemon (EditView.tells). */
import type { Comment } from "../../api/types.ts";
import { pluralize } from "../../lib/duration.ts";
import type { Tally } from "../../lib/hunks.ts";

export interface ReviewOutcome {
  readonly tally: Tally;
  readonly deletes: boolean;
  /** The whole file was edited, not single hunks. */
  readonly rewritten: boolean;
}

export function summarizeReview({ tally, deletes, rewritten }: ReviewOutcome, comments: number): string {
  const parts = [deletes ? "allowed the deletion" : rewritten ? "edited the file" : kept(tally)];
  if (tally.partly && tally.hunks > 1) parts.push(`${tally.partly} in part`);
  if (tally.edited && tally.hunks > 1) parts.push(`${tally.edited} edited`);
  if (comments) parts.push(pluralize(comments, "comment"));
  return parts.join(", ");
}

/** The reason of a denial, with the line comments in it. */
export function denialReason(hunks: number, comments: readonly Comment[]): string {
  const head = `Rejected ${hunks === 1 ? "the only hunk" : `all ${hunks} hunks`}: nothing was written.`;
  return [head, ...comments.map(({ line, text }) => `Line ${line}: ${text}`)].join("\n");
}

function kept({ hunks, kept: count, partly, edited }: Tally): string {
  if (hunks <= 1) return edited ? "edited it" : partly ? "kept some of its lines" : "kept it as proposed";
  if (count === hunks) return `kept all ${hunks} hunks`;
  return `kept ${count} of ${pluralize(hunks, "hunk")}`;
}
