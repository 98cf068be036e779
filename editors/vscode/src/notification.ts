/** Which questions a notification of the editor may answer. */
import type { ApprovalView } from "../../../ui/src/api/types.ts";

/** A longer command is cut off in a notification, so it cannot be answered there. */
const LONGEST_TITLE = 160;
/** Printable ASCII without the backslash, which spells hidden characters. */
const PLAIN = /^[\x20-\x5b\x5d-\x7e]*$/;

/** A notification shows one short line: what is longer, or needs more than a look at it, is answered elsewhere. */
export function canAnswerHere(approval: Pick<ApprovalView, "risk" | "title" | "reviewable" | "preview">): boolean {
  const isPlain = PLAIN.test(approval.title) && approval.title.length <= LONGEST_TITLE;
  return approval.risk !== "high" && isPlain && !approval.reviewable && approval.preview?.kind !== "diff" && approval.preview?.kind !== "result";
}
