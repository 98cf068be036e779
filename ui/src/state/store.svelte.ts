/**
 * The page's one store: the model, and the link that keeps it up to date.
 *
 * Owns connecting, resuming by sequence number, and what the person is told about it. It does not know
 * views; how events change the model is model.ts's.
 */
import { type Api, Refused } from "../api/client.ts";
import { follow } from "../api/eventSocket.ts";
import { session } from "../api/auth.svelte.ts";
import type { Entry, LiveEntries, Restart } from "../api/types.ts";
import { advance, fromState, type Model, retitled } from "./model.ts";

export type Link = { kind: "connecting" } | { kind: "live" } | { kind: "away"; since: number; retryAt: number };

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
/** A restart that is older than this when the page opens is history, not news. */
const NEWS_MS = 10 * 60_000;

/** Hears every fact as it comes; null when some were missed, and what was made of them must be asked for again. */
export type Ear = (entry: Entry | null) => void;

export class Store {
  model = $state.raw<Model | null>(null);
  link = $state.raw<Link>({ kind: "connecting" });
  /** A restart the person has not waved away yet. */
  restart = $state.raw<Restart | null>(null);
  readonly api: Api;
  private readonly end = new AbortController();
  /** Entries were missing: the next connection begins with a new snapshot. */
  private stale = false;
  private readonly ears = new Set<Ear>();

  constructor(api: Api) {
    this.api = api;
    void this.run();
  }

  stop(): void {
    this.end.abort();
  }

  /** Lets somebody hear the facts until the returned function is called. */
  hear(ear: Ear): () => void {
    this.ears.add(ear);
    return () => void this.ears.delete(ear);
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

  /** One connection, from the snapshot to the end of the socket; true when it was really live. */
  private async attempt(): Promise<boolean> {
    try {
      await this.load();
    } catch (error) {
      if (error instanceof Refused && error.status === 401) this.signOut(error.message);
      return false;
    }
    return follow(this.api, this.model?.seq ?? 0, { opened: () => (this.link = { kind: "live" }), frame: this.take }, this.end.signal);
  }

  /** A snapshot where there is none, or where the daemon's journal is another one; else only its heading. */
  private async load(): Promise<void> {
    const state = await this.api.state();
    const model = this.model;
    if (model && !this.stale && state.seq >= model.seq) this.model = retitled(model, state);
    else {
      this.stale = false;
      this.model = fromState(state, performance.now());
      if (model) this.tell([null]);
      const recent = state.now - state.started.at < NEWS_MS && state.started.crashed;
      if (model ? model.started.pid !== state.started.pid : recent) this.restart = state.started;
    }
  }

  private readonly take = (frame: LiveEntries, received: number): boolean => {
    if (!this.model) return false;
    const next = advance(this.model, frame, received);
    this.stale = next === null;
    if (!next) return false;
    if (next.started.seq !== this.model.started.seq) this.restart = next.started;
    const known = this.model.seq;
    this.model = next;
    this.tell(frame.entries.filter(({ seq }) => seq > known));
    return true;
  };

  private tell(entries: readonly (Entry | null)[]): void {
    for (const ear of this.ears) for (const entry of entries) ear(entry);
  }

  private away(pause: number): void {
    const since = this.link.kind === "away" ? this.link.since : performance.now();
    this.link = { kind: "away", since, retryAt: performance.now() + pause };
  }

  private signOut(why: string): void {
    this.stop();
    session.signedOut(why);
  }
}
