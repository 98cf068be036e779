/** What a decision of this tab did, for a toast; pure. */
import { excerpt, headline } from "../../lib/callText.ts";
import { pluralize } from "../../lib/duration.ts";
import { visibleText } from "../../lib/visibleText.ts";
import type { TrackedApproval } from "../../state/model.ts";

export interface DecisionText {
  readonly text: string;
  /** The ids of the rules that were made with it. */
  readonly rules: readonly string[];
}

export function decisionText(approval: TrackedApproval): DecisionText {
  const { rules = [], status, edited } = approval;
  const what = `\`${visibleText(excerpt(headline(approval, approval), 80, 1).shown)}\``;
  if (status === "denied") return { text: `Denied ${what}.`, rules: [] };
  if (status !== "allowed") return { text: `Cancelled ${what}.`, rules: [] };
  const made = rules.length ? ` ${pluralize(rules.length, "rule")} made: you will not be asked again for calls like it.` : "";
  return { text: `Allowed ${what}${edited ? ", edited" : ""}.${made}`, rules };
}
