/**
 * The person's desk: what is selected, how the list stands, and what their hand may do right now.
 *
 * Owns the selection, the frozen order and the guard, and lends the verbs only through the guard. It does
 * not know elements or keys (views/, keys.ts).
 */
import { MediaQuery } from "svelte/reactivity";

import type { CompleteBody } from "../types.ts";
import { Arming } from "./arming.svelte.ts";
import type { TrackedApproval, TrackedCall, TrackedTerminal } from "./model.ts";
import { frozen, next, nothing, sections, type Sections } from "./order.ts";
import { route } from "./route.svelte.ts";
import type { Store } from "./store.svelte.ts";
import { toasts } from "./toasts.svelte.ts";
import { Verbs } from "./verbs.ts";

export class Desk {
  readonly store: Store;
  readonly verbs: Verbs;
  /** Over whatever is selected. */
  readonly arming = new Arming();
  readonly wide = new MediaQuery("min-width: 1100px");
  readonly phone = new MediaQuery("max-width: 639px");
  shown = $state.raw<Sections>(nothing);
  /** A pointer or the focus is in the list. */
  held = $state(false);
  filter = $state("");
  telling = $state(false);
  reason = $state("");
  completing = $state(false);
  help = $state(false);
  /** A terminal that was just opened here: the focus goes to it. */
  eager = "";
  private readonly mine = new Set<string>();

  constructor(store: Store) {
    this.store = store;
    this.verbs = new Verbs(store.api);
  }

  readonly wanted = $derived.by((): Sections => (this.store.model ? sections(this.store.model) : nothing));
  readonly beside = $derived(this.wide.current && route.place.view === "inbox");
  /** The call that is open; on a wide page the first question opens by itself. */
  readonly selected = $derived(route.place.call ?? (this.beside ? (this.shown.needs.find((id) => this.isQuestion(id)) ?? null) : null));
  readonly approval = $derived(this.selected ? this.approvalOf(this.selected) : undefined);

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

  /** Under the guard, and only where the whole of what is decided can be seen. */
  allow(strong: boolean): void {
    const approval = this.question();
    if (!approval) return;
    if (approval.risk === "high" && !strong) return toasts.say("High risk: press Shift+A or click to allow.");
    this.mine.add(approval.call_id);
    void this.verbs.allow(approval);
  }

  deny(reason = ""): void {
    const approval = this.question();
    if (!approval) return;
    this.mine.add(approval.call_id);
    this.telling = false;
    void this.verbs.deny(approval, reason);
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
    if (this.telling && this.reason) return null; // somebody is still writing about it
    const following = next(this.shown.needs, id, (other) => this.isQuestion(other));
    if (this.wide.current) route.open(following ?? id);
    else if (own) route.close();
    return this.wide.current || own ? following : null;
  }

  /** Half-done answers belong to one question only. */
  putDown(): void {
    this.telling = this.completing = false;
    this.reason = "";
  }

  private question(): TrackedApproval | null {
    const open = this.approval?.status === "open" ? this.approval : null;
    return open && this.arming.ready ? open : null;
  }

  private isQuestion(id: string): boolean {
    return this.approvalOf(id)?.status === "open";
  }

  private sayWho(id: string): void {
    const approval = this.approvalOf(id);
    if (!approval) return;
    if (approval.status === "withdrawn") toasts.say(`Withdrawn: ${approval.reason || "the call ended another way"}.`);
    else if (approval.by) toasts.say(`${approval.status === "allowed" ? "Allowed" : "Denied"} by ${approval.by}.`);
  }
}
