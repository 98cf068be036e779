/**
 * The page's store: the model, and the connection that keeps it current.
 *
 * Connects, and resumes by sequence number. Events are applied in model.ts.
 */
import { auth } from "../api/auth.svelte.ts";
import { type Api, ApiError } from "../api/client.ts";
import { followEvents } from "../api/eventSocket.ts";
import type { ClientView, EditorView, Entry, LiveEntries, Restart } from "../api/types.ts";
import { advance, type Model, modelFromState, updateHeading } from "./model.ts";

export type Connection =
  | { kind: "connecting" }
  | { kind: "live" }
  /** `hangs`: its connections stay open, but it does not answer. */
  | { kind: "away"; since: number; retryAt: number; hangs: boolean };

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
/** An older restart is not announced when the page opens. */
const NEWS_MS = 10 * 60_000;

/** Receives every journal entry; null if some were missed, and derived state must be fetched again. */
export type Listener = (entry: Entry | null) => void;

export class Store {
  model = $state.raw<Model | null>(null);
  link = $state.raw<Connection>({ kind: "connecting" });
  /** The clients that run now. */
  clients = $state.raw<readonly ClientView[]>([]);
  /** The editors that run now. */
  editors = $state.raw<readonly EditorView[]>([]);
  /** A restart that the person has not dismissed. */
  restart = $state.raw<Restart | null>(null);
  readonly api: Api;
  private readonly end = new AbortController();
  /** Entries were missed: the next connection starts with a new snapshot. */
  private stale = false;
  private readonly listeners = new Set<Listener>();

  constructor(api: Api) {
    this.api = api;
    void this.run();
  }

  stop(): void {
    this.end.abort();
  }

  /** Subscribes to journal entries; returns the unsubscribe function. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Fetches again what events do not carry: whether the policy is in force. */
  async refreshHeading(): Promise<void> {
    const state = await this.api.state().catch(() => null);
    if (state && this.model) this.model = updateHeading(this.model, state);
  }

  private async run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.end.signal.aborted) {
      if (await this.attempt()) pause = FIRST_PAUSE_MS;
      if (this.end.signal.aborted) return;
      this.away(pause);
      await new Promise((wake) => setTimeout(wake, pause));
      pause = Math.min(pause * 1.7, LONGEST_PAUSE_MS);
    }
  }

  /** One connection, from the snapshot to the end of the socket; true if it was live. */
  private async attempt(): Promise<boolean> {
    try {
      await this.load();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.signOut(error.message);
      return false;
    }
    const { opened, silentSince } = await followEvents(this.api, this.model?.seq ?? 0, { opened: this.opened, frame: this.applyFrame }, this.end.signal);
    if (silentSince !== null) this.link = { kind: "away", since: silentSince, retryAt: 0, hangs: true };
    return opened;
  }

  /** Loads a snapshot at first and for another journal; else only the heading. */
  private async load(): Promise<void> {
    const state = await this.api.state();
    const model = this.model;
    if (model && !this.stale && state.seq >= model.seq) this.model = updateHeading(model, state);
    else {
      this.stale = false;
      this.model = modelFromState(state, performance.now());
      if (model) this.notify([null]);
      const recent = state.now - state.started.at < NEWS_MS && state.started.crashed;
      if (model ? model.started.pid !== state.started.pid : recent) this.restart = state.started;
    }
  }

  /** The daemon sends the clients and the editors after this, unless none runs. */
  private readonly opened = (): void => {
    this.link = { kind: "live" };
    this.clients = [];
    this.editors = [];
  };

  private readonly applyFrame = (frame: LiveEntries, received: number): boolean => {
    if (!this.model) return false;
    const next = advance(this.model, frame, received);
    this.stale = next === null;
    if (!next) return false;
    const isNewDaemon = next.started.seq !== this.model.started.seq;
    if (isNewDaemon) this.restart = next.started;
    const known = this.model.seq;
    this.model = next;
    if (frame.clients) this.clients = frame.clients;
    if (frame.editors) this.editors = frame.editors;
    // The snapshot was the previous daemon's: while none runs, the keeper holds the port, and the socket waits there.
    if (isNewDaemon) void this.refreshHeading();
    this.notify(frame.entries.filter(({ seq }) => seq > known));
    return true;
  };

  private notify(entries: readonly (Entry | null)[]): void {
    for (const listener of this.listeners) for (const entry of entries) listener(entry);
  }

  private away(pause: number): void {
    const { since, hangs } = this.link.kind === "away" ? this.link : { since: performance.now(), hangs: false };
    this.link = { kind: "away", since, retryAt: performance.now() + pause, hangs };
  }

  private signOut(why: string): void {
    this.stop();
    auth.signedOut(why);
  }
}
