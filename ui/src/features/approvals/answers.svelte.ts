/**
 * The answer a person is giving to the open question: which way they began, and the guard before every one of them.
 *
 * Owns that nothing is sent before the guard is ready, and that high risk needs a strong hand (Shift, or a click). It
 * does not know buttons or keys, nor what becomes of the question afterwards (desk).
 */
import { type Api, Refused } from "../../api/client.ts";
import { lines } from "../rules/ruleText.ts";
import type { AnswerBody, Comment, EditView, Json, ProposedView, Risk, RuleBody } from "../../api/types.ts";
import type { Arming } from "../../state/inputGuard.svelte.ts";
import type { TrackedApproval } from "../../state/model.ts";
import { toasts } from "../../state/toasts.svelte.ts";

/** What stands in the bar: the plain answers, or one that wants more words. */
export type Mode = "choose" | "tell" | "rule" | "edit";

/** What the page lends to it. */
export interface Asker {
  readonly arming: Arming;
  /** The open question that is looked at. */
  question(): TrackedApproval | null;
  /** All about it has come: what it lacks now, it lacks. */
  known(): boolean;
  send(approval: TrackedApproval, body: AnswerBody): void;
  readonly api: Pick<Api, "edit" | "propose" | "proposal">;
}

export class Answers {
  mode = $state<Mode>("choose");
  reason = $state("");
  /** The proposal was changed in a review: to allow it as it was would not be what the person means. */
  touched = $state(false);
  private readonly asker: Asker;

  constructor(asker: Asker) {
    this.asker = asker;
  }

  /** Half-done answers belong to one question only. */
  putDown(): void {
    this.mode = "choose";
    this.reason = "";
    this.touched = false;
  }

  get api(): Asker["api"] {
    return this.asker.api;
  }

  /** Opens a way of answering; what then lies under the hand is new, and is guarded anew. */
  begin(mode: Mode): void {
    const approval = this.asker.question();
    if (!approval || (mode !== "choose" && !this.asker.arming.ready)) return;
    if (mode === "edit" && !approval.can_edit) return toasts.say(approval.why_not_edit);
    if (mode === "rule" && lines(approval.suggestions).length === 0) return this.sayNone();
    this.mode = mode;
    this.asker.arming.arm();
  }

  allow(strong: boolean): void {
    const approval = this.plain(strong);
    if (approval) this.send(approval, { answer: "allow", digest: approval.digest });
  }

  /** Allows it and, for this agent's session, what is like it. */
  session(strong: boolean): void {
    const approval = this.plain(strong);
    if (!approval) return;
    const rules = lines(approval.suggestions).map(({ suggestion }) => ({ ...suggestion.rule, scope: "session" as const }));
    if (rules.length === 0) this.sayNone();
    else this.send(approval, { answer: "allow", digest: approval.digest, rule: rules.map(whole) });
  }

  always(rules: readonly RuleBody[], strong: boolean): void {
    const approval = this.ready(strong);
    if (approval && rules.length) this.send(approval, { answer: "allow", digest: approval.digest, rule: rules.map(whole) });
  }

  /** Allows what was edited, as its preview showed it. */
  edited(input: Json, preview: EditView, strong: boolean): void {
    const approval = this.ready(strong, preview.risk);
    if (approval) this.send(approval, { answer: "allow", digest: preview.digest, input });
  }

  /** Allows a file's content as the person reviewed it; content null is as it was proposed. */
  reviewed(content: string | null, comments: readonly Comment[], digest: string, strong: boolean): void {
    const approval = this.ready(strong);
    if (approval) this.send(approval, { answer: "allow", digest, content, comments: [...comments] });
  }

  /** Gives what a person filled in where a form asked for it; why not, in the daemon's words, when that cannot be given. */
  async fill(values: Json): Promise<string> {
    const approval = this.ready(true);
    if (!approval) return "";
    const input = { ...approval.input, values };
    try {
      const { digest } = await this.asker.api.edit(approval.id, { input });
      if (this.asker.question()?.id === approval.id) this.send(approval, { answer: "allow", digest, input });
      return "";
    } catch (error) {
      return error instanceof Refused ? error.message : "The daemon does not answer.";
    }
  }

  deny(reason = ""): void {
    const approval = this.asker.question();
    if (approval && this.asker.arming.ready) this.send(approval, { answer: "deny", digest: approval.digest, reason });
  }

  /** What an edit would come to; its coming puts something new under the hand. */
  async preview(input: Json): Promise<EditView> {
    const approval = this.asker.question();
    if (!approval) throw new Error("This question is answered.");
    const view = await this.asker.api.edit(approval.id, { input });
    this.asker.arming.arm();
    return view;
  }

  propose(rule: RuleBody): Promise<ProposedView> {
    return this.asker.api.propose(rule, this.asker.question()?.id ?? null);
  }

  /** Beside a half-done edit or review, "as it was asked" is no answer. */
  private plain(strong: boolean): TrackedApproval | null {
    if (this.mode !== "choose") return null;
    if (!this.touched) return this.ready(strong);
    toasts.say("You changed the proposal: send your review, or start over.");
    return null;
  }

  private ready(strong: boolean, risk?: Risk): TrackedApproval | null {
    const approval = this.asker.question();
    if (!approval || !this.asker.arming.ready) return null;
    if ((risk ?? approval.risk) !== "high" || strong) return approval;
    toasts.say("High risk: hold Shift, or click.");
    return null;
  }

  private sayNone(): void {
    toasts.say(this.asker.known() ? NO_RULE : "Which rules would fit is still being asked for; try again in a moment.");
  }

  private send(approval: TrackedApproval, body: AnswerBody): void {
    this.asker.send(approval, body);
  }
}

export const NO_RULE = "No rule can decide this one: what Handrail does not fully understand, and places that are never allowed without a person, always ask.";

/** The wire wants every field that has a default. */
function whole(rule: RuleBody): WholeRule {
  return { effect: "allow", match: [], not_match: [], note: "", scope: "project", ...rule } as WholeRule;
}

type WholeRule = Extract<NonNullable<AnswerBody["rule"]>, readonly unknown[]>[number];
