/**
 * The person's desk: what is selected, how the list stands, and what their hand may do right now.
 *
 * Owns the selection, the frozen order and the guard, and lends the verbs only through the guard. It does
 * not know elements or keys (views/, keys.ts).
 */
import { MediaQuery } from "svelte/reactivity";

import type { AnswerBody, CompleteBody } from "../../api/types.ts";
import { Answers } from "../approvals/answers.svelte.ts";
import { Arming } from "../../state/inputGuard.svelte.ts";
import type { TrackedApproval, TrackedCall, TrackedTerminal } from "../../state/model.ts";
import { frozen, next, nothing, ofThread, sections, type Sections } from "./sections.ts";
import { Question } from "../approvals/approvalDetails.svelte.ts";
import { route } from "../../state/route.svelte.ts";
import { Agents } from "../threads/agents.svelte.ts";
import { Rules } from "../rules/rules.svelte.ts";
import type { Store } from "../../state/store.svelte.ts";
import { Talk } from "../threads/threadActions.ts";
import { Threads } from "../threads/threads.svelte.ts";
import { toasts } from "../../state/toasts.svelte.ts";
import { Usuals } from "../calls/typicalDurations.svelte.ts";
import { Verbs } from "../calls/callActions.ts";

export class Desk {
  readonly store: Store;
  readonly verbs: Verbs;
  readonly rules: Rules;
  readonly usuals: Usuals;
  readonly answers: Answers;
  readonly threads: Threads;
  readonly agents: Agents;
  readonly talk: Talk;
  private readonly whole: Question;
  /** Over whatever is selected. */
  readonly arming = new Arming();
  readonly wide = new MediaQuery("min-width: 1100px");
  readonly phone = new MediaQuery("max-width: 639px");
  shown = $state.raw<Sections>(nothing);
  /** A pointer or the focus is in the list. */
  held = $state(false);
  filter = $state("");
  completing = $state(false);
  help = $state(false);
  /** "Why am I asked?" is open. */
  why = $state(false);
  /** The low-risk questions that are about to be allowed together are listed. */
  bulk = $state(false);
  /** A terminal that was just opened here: the focus goes to it. */
  eager = "";
  /** The call of the open conversation that the person turned to. */
  asked = $state<string | null>(null);
  /** Where messages stand in their threads, of those that a search found. */
  readonly places = new Map<string, number>();
  private readonly mine = new Set<string>();

  constructor(store: Store) {
    this.store = store;
    this.verbs = new Verbs(store.api);
    this.rules = new Rules(store.api);
    this.usuals = new Usuals(store.api);
    this.threads = new Threads(store.api);
    this.agents = new Agents(store.api);
    this.talk = new Talk(store.api);
    this.whole = new Question(store.api);
    this.answers = new Answers({ arming: this.arming, api: store.api, question: () => this.question(), known: () => this.known, send: (approval, body) => this.send(approval, body) });
  }

  readonly wanted = $derived.by((): Sections => (this.store.model ? sections(this.store.model) : nothing));
  readonly beside = $derived(this.wide.current && route.place.view === "inbox");
  /** The call that is open; on a wide page the first question opens by itself, and so it does in a conversation. */
  readonly selected = $derived.by((): string | null => {
    const { call, thread } = route.place;
    if (call) return call;
    if (this.beside) return this.shown.needs.find((id) => this.isQuestion(id)) ?? null;
    return thread && this.store.model ? ofThread(this.store.model, thread, this.asked) : null;
  });
  /** Conversations in which something waits for the person. */
  readonly waiting = $derived.by(() => new Set(this.store.model ? [...this.store.model.approvals.values()].flatMap(({ status, caller }) => (status === "open" && caller.thread ? [caller.thread] : [])) : []));
  readonly approval = $derived.by((): TrackedApproval | undefined => {
    const known = this.selected ? this.approvalOf(this.selected) : undefined;
    return known && this.whole.of(known);
  });

  /** All about the question that is looked at has come. */
  get known(): boolean {
    return this.approval !== undefined && this.whole.knows(this.approval.id);
  }

  call(id: string): TrackedCall | undefined {
    return this.store.model?.calls.get(id);
  }

  approvalOf(call: string): TrackedApproval | undefined {
    const id = this.call(call)?.approval_id;
    return id ? this.store.model?.approvals.get(id) : undefined;
  }

  /** The terminal of a call, while it runs. */
  terminalOf(call: string): TrackedTerminal | undefined {
    const id = this.call(call)?.terminal_id;
    return id ? this.store.model?.terminals.get(id) : undefined;
  }

  /** Takes what is wanted, or what may be taken of it while the list is held. */
  arrange(wanted: Sections, shown: Sections): void {
    this.shown = this.held ? frozen(shown, wanted, (id) => this.call(id) !== undefined) : wanted;
  }

  /** Asks for all there is to know about the question that is looked at. */
  look(): void {
    const known = this.selected ? this.approvalOf(this.selected) : undefined;
    void this.whole.show(known?.status === "open" ? known.id : null);
  }

  cancel(id: string): void {
    void this.verbs.cancel(id);
  }

  complete(id: string, body: CompleteBody): void {
    void this.verbs.complete(id, body);
  }

  /** What becomes of the desk when the selected question is one no more. Gives the row to focus. */
  resolved(id: string): string | null {
    const own = this.mine.delete(id);
    if (!own) this.sayWho(id);
    if (route.place.thread) return null; // a conversation goes on where it is
    if (this.answers.mode === "tell" && this.answers.reason) return null; // somebody is still writing about it
    const following = next(this.shown.needs, id, (other) => this.isQuestion(other));
    if (this.wide.current) route.open(following ?? id);
    else if (own) route.close();
    return this.wide.current || own ? following : null;
  }

  /** Half-done answers belong to one question only. */
  putDown(): void {
    this.completing = this.why = false;
    this.answers.putDown();
  }

  private question(): TrackedApproval | null {
    return this.approval?.status === "open" ? this.approval : null;
  }

  /** An answer that is refused leaves the question open: it is looked at anew, and guarded anew. */
  private send(approval: TrackedApproval, body: AnswerBody): void {
    if (this.verbs.busy(approval.id)) return; // the first of a double stroke counts
    this.mine.add(approval.call_id);
    void this.verbs.answer(approval.id, body).then((taken) => {
      if (taken) return;
      this.mine.delete(approval.call_id);
      this.arming.arm();
      this.look();
    });
  }

  private isQuestion(id: string): boolean {
    return this.approvalOf(id)?.status === "open";
  }

  private sayWho(id: string): void {
    const approval = this.approvalOf(id);
    if (!approval) return;
    if (approval.status === "expired") toasts.say("Expired: nobody answered in the time that was set.");
    else if (approval.status === "withdrawn") toasts.say(`Withdrawn: ${approval.reason || "the call ended another way"}.`);
    else if (approval.by) toasts.say(`${approval.status === "allowed" ? "Allowed" : "Denied"} by ${this.who(approval.by)}.`);
  }

  private who(by: string): string {
    return by.startsWith("rule ") ? `a rule: ${this.rules.words(by.slice("rule ".length))}` : by;
  }
}
