/**
 * State and actions of the page: the selection, the list order, and the guarded answer.
 *
 * Owns the selection, the frozen order and the guard. Answers are sent only through the guard. It does not touch the
 * DOM (components) or keys (app/pageKeys.ts).
 */
import { MediaQuery } from "svelte/reactivity";

import type { AnswerBody, CompleteBody } from "../../api/types.ts";
import { InputGuard } from "../../state/inputGuard.svelte.ts";
import type { TrackedApproval, TrackedCall, TrackedTerminal } from "../../state/model.ts";
import { route } from "../../state/route.svelte.ts";
import { settings } from "../../state/settings.svelte.ts";
import { showError } from "../../state/showError.ts";
import type { Store } from "../../state/store.svelte.ts";
import { toasts } from "../../state/toasts.svelte.ts";
import { Answers } from "../approvals/answers.svelte.ts";
import { ApprovalDetails } from "../approvals/approvalDetails.svelte.ts";
import { CallActions } from "../calls/callActions.ts";
import { TypicalDurations } from "../calls/typicalDurations.svelte.ts";
import { clientStates, sessionFilter } from "../clients/clientText.ts";
import { KeyStore } from "../keys/keys.svelte.ts";
import { ServerStore } from "../servers/servers.svelte.ts";
import { RuleStore } from "../rules/rules.svelte.ts";
import { Agents } from "../threads/agents.svelte.ts";
import { ThreadActions } from "../threads/threadActions.ts";
import { ThreadList } from "../threads/threads.svelte.ts";
import { TranscriptList } from "../threads/transcripts.svelte.ts";
import { decisionText } from "./decisionText.ts";
import { buildSections, currentThreadCall, freezeSections, nextAfter, NO_SECTIONS, openApprovals, pinSection, type Sections } from "./sections.ts";

export class InboxController {
  readonly store: Store;
  readonly callActions: CallActions;
  readonly rules: RuleStore;
  readonly typicalDurations: TypicalDurations;
  readonly answers: Answers;
  readonly threads: ThreadList;
  readonly transcripts: TranscriptList;
  readonly agents: Agents;
  readonly keys: KeyStore;
  readonly servers: ServerStore;
  readonly threadActions: ThreadActions;
  private readonly approvalDetails: ApprovalDetails;
  /** Guards the selected call. */
  readonly guard = new InputGuard();
  readonly wide = new MediaQuery("min-width: 1100px");
  /** The rail has room for words. */
  readonly broadRail = new MediaQuery("min-width: 900px");
  readonly phone = new MediaQuery("max-width: 639px");
  shownSections = $state.raw<Sections>(NO_SECTIONS);
  /** A pointer or the focus is in the list. */
  listHeld = $state(false);
  /** Moves the ring in the shown list; null where the list has all of its rows in the document. */
  moveRing: ((step: number) => void) | null = null;
  /** Selects the row that has the ring, or takes it out of the selection. */
  toggleSelection: (() => void) | null = null;
  completing = $state(false);
  helpOpen = $state(false);
  paletteOpen = $state(false);
  signInsOpen = $state(false);
  /** The commands that connect an agent are open. */
  connecting = $state(false);
  /** "Why am I asked?" is open. */
  whyOpen = $state(false);
  /** The dialog that allows several low-risk calls is open. */
  bulkOpen = $state(false);
  /** A terminal that is opened to type into it. */
  private terminalToFocus = "";
  /** The call that the person selected in the open thread. */
  threadCall = $state<string | null>(null);
  /** Positions of messages that a search found, by id. */
  readonly messagePositions = new Map<string, number>();
  private readonly answeredHere = new Set<string>();
  /** The call that a wide inbox shows without one in the URL. It stays until the person moves on, also when it has ended. */
  private kept = $state<string | null>(null);
  /** The last question that was decided while it was open. */
  private resolved = $state<string | null>(null);

  constructor(store: Store) {
    this.store = store;
    this.callActions = new CallActions(store.api);
    this.rules = new RuleStore(store.api);
    this.typicalDurations = new TypicalDurations(store.api);
    this.threads = new ThreadList(store.api);
    this.transcripts = new TranscriptList(store.api);
    this.agents = new Agents(store.api);
    this.keys = new KeyStore(store.api);
    this.servers = new ServerStore(store.api);
    this.threadActions = new ThreadActions(store.api);
    this.approvalDetails = new ApprovalDetails(store.api);
    this.answers = new Answers({ guard: this.guard, api: store.api, question: () => this.openQuestion(), known: () => this.hasApprovalDetails, send: (approval, body) => this.send(approval, body) });
  }

  readonly currentSections = $derived.by((): Sections => (this.store.model ? buildSections(this.store.model) : NO_SECTIONS));
  readonly showsPaneBesideInbox = $derived(this.wide.current && route.place.view === "inbox");
  /** The open call: the one in the pane, with the ring, on which keys act. In a thread, its current call. */
  readonly selected = $derived.by((): string | null => {
    const { call, thread } = route.place;
    if (call) return call;
    if (this.showsPaneBesideInbox) return this.kept;
    return thread && this.store.model ? currentThreadCall(this.store.model, thread, this.threadCall) : null;
  });
  /** What clients call themselves that made calls, or run now. */
  readonly callers = $derived.by(() => [...new Set([...[...(this.store.model?.calls.values() ?? [])].map(({ caller }) => caller.client), ...this.clientStates.map(({ client }) => client.client)])]);
  /** Threads with an open question. */
  readonly waitingThreads = $derived.by(() => new Set(this.store.model ? [...this.store.model.approvals.values()].flatMap(({ status, caller }) => (status === "open" && caller.thread ? [caller.thread] : [])) : []));
  readonly approval = $derived.by((): TrackedApproval | undefined => {
    const known = this.selected ? this.approvalOf(this.selected) : undefined;
    return known && this.approvalDetails.merge(known);
  });

  /** Starts the demo; its calls come to the inbox. */
  async startDemo(): Promise<void> {
    this.listHeld = false; // the pointer is over the button: no row has to keep its place for it
    try {
      const { terminal } = await this.store.api.startDemo();
      toasts.offer("The demo runs for ten minutes. Its terminal says what it does.", "Show terminal", () => route.openTerminal(terminal));
    } catch (error) {
      showError(error);
    }
  }

  /** Pauses all agents, or lets them go on. */
  async setPaused(paused: boolean): Promise<void> {
    try {
      await (paused ? this.store.api.pause() : this.store.api.resume());
    } catch (error) {
      showError(error);
    }
  }

  /** The text of the search field; the inbox is not searched. */
  get filter(): string {
    return route.place.view === "inbox" ? "" : route.query;
  }

  set filter(text: string) {
    route.search(text);
  }

  /** The selected approval was fetched. */
  get hasApprovalDetails(): boolean {
    return this.approval !== undefined && this.approvalDetails.has(this.approval.id);
  }

  /** The clients that run now. */
  readonly clientStates = $derived.by(() => clientStates(this.store.clients, this.store.model ? openApprovals(this.store.model) : []));

  /** Shows the calls of one conversation of a client. */
  showSession(client: string, session: string): void {
    route.go("calls", sessionFilter(client, session));
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

  /**
   * Applies new sections; while the list is held, rows keep their places. The open question keeps its place also when
   * it ends without being allowed; an allowed one goes on to the running calls.
   */
  arrange(wanted: Sections, shown: Sections): void {
    const known = (id: string): boolean => this.call(id) !== undefined;
    this.shownSections = this.listHeld ? freezeSections(shown, wanted, known) : pinSection(shown, wanted, this.pinned());
  }

  /** Opens the first question in an empty pane. What the pane shows is never replaced by this. */
  openFirst(): void {
    if (route.place.call) this.kept = route.place.call;
    else this.kept ??= this.firstQuestion();
  }

  /** The person went to the inbox: a call that has ended gives way to the first question. */
  enterInbox(): void {
    if (!route.place.call && !(this.kept && this.isOpenQuestion(this.kept))) this.kept = this.firstQuestion() ?? this.kept;
  }

  /** The question to offer after the open call, which needs nobody any more; null if there is none. */
  get nextQuestion(): string | null {
    const id = this.selected;
    if (!id || id !== this.resolved || route.place.view !== "inbox") return null;
    return nextAfter(this.shownSections.needs, id, (other) => this.isOpenQuestion(other));
  }

  /** Opens a terminal. One that waits for input gets the focus, as does one that was just made. */
  openTerminal(id: string, made = false): void {
    if (made || this.store.model?.terminals.get(id)?.asks) this.terminalToFocus = id;
    route.openTerminal(id);
  }

  /** Whether this terminal gets the focus as it is drawn; only once, since later the person may just pass by. */
  takeTerminalFocus(id: string): boolean {
    const wanted = this.terminalToFocus === id;
    this.terminalToFocus = "";
    return wanted;
  }

  /** Fetches the selected approval. */
  loadApproval(): void {
    const known = this.selected ? this.approvalOf(this.selected) : undefined;
    void this.approvalDetails.load(known?.status === "open" ? known.id : null);
  }

  cancel(id: string): void {
    this.decideHere(id);
    void this.callActions.cancel(id);
  }

  complete(id: string, body: CompleteBody): void {
    this.decideHere(id);
    void this.callActions.complete(id, body);
  }

  /**
   * A question is no longer open. After a decision of this tab, opens the next one if the person wants that; otherwise
   * the card stays, with its outcome. Returns the row to focus.
   */
  leaveResolved(id: string): string | null {
    const own = this.answeredHere.delete(id);
    this.resolved = id;
    if (own) this.confirmDecision(id);
    else this.announceDecision(id);
    if (!own || !settings.advance || route.place.thread) return null; // a thread keeps its selection
    const following = nextAfter(this.shownSections.needs, id, (other) => this.isOpenQuestion(other));
    if (!this.wide.current) route.close();
    else if (following) route.openCall(following);
    return following;
  }

  /** Unsent answers belong to one question. */
  resetAnswer(): void {
    this.completing = this.whyOpen = false;
    this.answers.reset();
  }

  private openQuestion(): TrackedApproval | null {
    return this.approval?.status === "open" ? this.approval : null;
  }

  /** A refused answer leaves the question open: fetch it again and re-arm the guard. */
  private send(approval: TrackedApproval, body: AnswerBody): void {
    if (this.callActions.busy(approval.id)) return; // ignore the second of a double click
    this.answeredHere.add(approval.call_id);
    void this.callActions.answer(approval.id, body).then((taken) => {
      if (taken) return;
      this.answeredHere.delete(approval.call_id);
      this.guard.arm();
      this.loadApproval();
    });
  }

  /** A cancelled or completed question is decided here, like an answered one. */
  private decideHere(id: string): void {
    if (this.isOpenQuestion(id)) this.answeredHere.add(id);
  }

  private pinned(): string | null {
    return this.wide.current && this.selected && this.approvalOf(this.selected)?.status !== "allowed" ? this.selected : null;
  }

  private firstQuestion(): string | null {
    return this.shownSections.needs.find((id) => this.isOpenQuestion(id)) ?? null;
  }

  private isOpenQuestion(id: string): boolean {
    return this.approvalOf(id)?.status === "open";
  }

  /** Answers back: what was decided, and the rules made with it, which can be taken back. */
  private confirmDecision(id: string): void {
    const approval = this.approvalOf(id);
    if (!approval) return;
    const { text, rules } = decisionText(approval);
    if (rules.length) toasts.offer(text, "Undo", () => void this.rules.revokeMade(rules));
    else toasts.show(text);
  }

  private announceDecision(id: string): void {
    const approval = this.approvalOf(id);
    if (!approval) return;
    if (approval.status === "expired") toasts.show("Expired: nobody answered in the time that was set.");
    else if (approval.status === "withdrawn") toasts.show(`Withdrawn: ${approval.reason || "the call ended another way"}.`);
    else if (approval.by) toasts.show(`${approval.status === "allowed" ? "Allowed" : "Denied"} by ${this.deciderName(approval.by)}.`);
  }

  private deciderName(by: string): string {
    return by.startsWith("rule ") ? `a rule: ${this.rules.words(by.slice("rule ".length))}` : by;
  }
}
