/**
 * The answer that the person is giving to the selected question.
 *
 * Sends nothing before the guard is ready, and needs Shift or a click for high risk. The inboxController handles the
 * time after the answer.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { AnswerBody, Comment, EditView, Json, ProposedView, Risk, RuleBody } from "../../api/types.ts";
import type { InputGuard } from "../../state/inputGuard.svelte.ts";
import type { TrackedApproval } from "../../state/model.ts";
import { toasts } from "../../state/toasts.svelte.ts";
import { suggestionLines } from "../rules/ruleText.ts";

/** The state of the answer bar: the plain answers, or a form that needs more input. */
export type AnswerMode = "choose" | "tell" | "rule" | "edit";

/** Dependencies that the page provides. */
export interface AnswerContext {
  readonly guard: InputGuard;
  /** The selected open question. */
  question(): TrackedApproval | null;
  /** The approval was fetched: an empty list of suggestions means that there are none. */
  known(): boolean;
  send(approval: TrackedApproval, body: AnswerBody): void;
  readonly api: Pick<Api, "edit" | "propose" | "proposal" | "output" | "outputPage" | "typeInto">;
}

export class Answers {
  mode = $state<AnswerMode>("choose");
  reason = $state("");
  /** A review changed the proposal, so that "allow as proposed" would not be what the person means. */
  touched = $state(false);
  /** The proposal can no longer be written: its file changed on disk. */
  stale = $state(false);
  private readonly context: AnswerContext;

  constructor(context: AnswerContext) {
    this.context = context;
  }

  /** Unsent answers belong to one question. */
  reset(): void {
    this.mode = "choose";
    this.reason = "";
    this.touched = this.stale = false;
  }

  get api(): AnswerContext["api"] {
    return this.context.api;
  }

  /** Opens a form, and re-arms the guard for its buttons. */
  begin(mode: AnswerMode): void {
    const approval = this.context.question();
    if (!approval || (mode !== "choose" && !this.context.guard.ready)) return;
    if (mode === "edit" && !approval.can_edit && approval.preview?.kind !== "result") return toasts.show(approval.why_not_edit ?? LOADING);
    if (mode === "rule" && suggestionLines(approval.suggestions ?? []).length === 0) return this.showNoRule();
    this.mode = mode;
    this.context.guard.arm();
  }

  allow(strong: boolean): void {
    const approval = this.plain(strong);
    if (approval) void this.sendWritable(approval, { answer: "allow", digest: approval.digest });
  }

  /** Allows the call and, for this agent's session, similar ones. */
  session(strong: boolean): void {
    const approval = this.plain(strong);
    if (!approval) return;
    const rules = suggestionLines(approval.suggestions ?? []).map(({ suggestion }) => ({ ...suggestion.rule, scope: "session" as const }));
    if (rules.length === 0) this.showNoRule();
    else void this.sendWritable(approval, { answer: "allow", digest: approval.digest, rule: rules.map(withDefaults) });
  }

  always(rules: readonly RuleBody[], strong: boolean): void {
    const approval = this.ready(strong);
    if (approval && rules.length) void this.sendWritable(approval, { answer: "allow", digest: approval.digest, rule: rules.map(withDefaults) });
  }

  /** Allows the edited input, as previewed. */
  edited(input: Json, preview: EditView, strong: boolean): void {
    const approval = this.ready(strong, preview.risk);
    if (approval) this.send(approval, { answer: "allow", digest: preview.digest, input });
  }

  /** Allows the reviewed content; null is the proposal as it is. */
  reviewed(content: string | null, comments: readonly Comment[], digest: string, strong: boolean): void {
    const approval = this.ready(strong);
    if (approval) this.send(approval, { answer: "allow", digest, content, comments: [...comments] });
  }

  /** Gives the agent this text in place of the result that waits. */
  replaceResult(content: string): void {
    const approval = this.ready(true);
    if (approval) this.send(approval, { answer: "allow", digest: approval.digest, content });
  }

  /** Submits a filled-in form; resolves to the daemon's error message, or "". */
  async fill(values: Json): Promise<string> {
    const approval = this.ready(true);
    if (!approval) return "";
    if (!approval.input) return LOADING;
    const input = { ...approval.input, values };
    try {
      const { digest } = await this.context.api.edit(approval.id, { input });
      if (this.context.question()?.id === approval.id) this.send(approval, { answer: "allow", digest, input });
      return "";
    } catch (error) {
      return error instanceof ApiError ? error.message : "The daemon does not answer.";
    }
  }

  deny(reason = ""): void {
    const approval = this.context.question();
    if (approval && this.context.guard.ready) this.send(approval, { answer: "deny", digest: approval.digest, reason });
  }

  /** Previews an edit, and re-arms the guard for the new preview. */
  async preview(input: Json): Promise<EditView> {
    const approval = this.context.question();
    if (!approval) throw new Error("This question is answered.");
    const view = await this.context.api.edit(approval.id, { input });
    this.context.guard.arm();
    return view;
  }

  propose(rule: RuleBody): Promise<ProposedView> {
    return this.context.api.propose(rule, this.context.question()?.id ?? null);
  }

  /** With an unsent edit or review, the plain answers are off. */
  private plain(strong: boolean): TrackedApproval | null {
    if (this.mode !== "choose") return null;
    if (this.stale) return this.refuseStale();
    if (!this.touched) return this.ready(strong);
    toasts.show("You changed the proposal: send your review, or start over.");
    return null;
  }

  private ready(strong: boolean, risk?: Risk): TrackedApproval | null {
    const approval = this.context.question();
    if (!approval || !this.context.guard.ready) return null;
    if ((risk ?? approval.risk) !== "high" || strong) return approval;
    toasts.show("High risk: hold Shift, or click.");
    return null;
  }

  private refuseStale(): null {
    this.stale = true;
    toasts.show(STALE, "red");
    return null;
  }

  /** Looks at the file once more: a proposal that can no longer be written cannot be allowed. */
  private async sendWritable(approval: TrackedApproval, body: AnswerBody): Promise<void> {
    const proposal = approval.reviewable ? await this.context.api.proposal(approval.id).catch(() => null) : null; // the answer itself reports a problem
    if ((proposal?.changed ?? null) === null) this.send(approval, body);
    else if (this.context.question()?.id === approval.id) this.refuseStale();
  }

  private showNoRule(): void {
    toasts.show(this.context.known() ? NO_RULE : "Which rules would fit is still being asked for; try again in a moment.");
  }

  private send(approval: TrackedApproval, body: AnswerBody): void {
    this.context.send(approval, body);
  }
}

export const STALE = "The file changed on disk, so this can no longer be written. Deny it, and let the agent read the file again.";

const LOADING = "The details of this call are still loading; try again in a moment.";

export const NO_RULE = "No rule can cover this call. Handrail always asks about what it cannot fully analyse, and about protected places.";

/** The generated type requires every field that has a default. */
function withDefaults(rule: RuleBody): CompleteRule {
  return { effect: "allow", match: [], not_match: [], note: "", scope: "project", ...rule } as CompleteRule;
}

type CompleteRule = Extract<NonNullable<AnswerBody["rule"]>, readonly unknown[]>[number];
