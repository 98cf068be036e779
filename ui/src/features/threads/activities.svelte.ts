/**
 * The activities of a thread's operations: each operation is fetched once, then updated by events.
 *
 * An operation whose agent reports no activities has none. Merging is in threads/activityTree.ts.
 */
import { SvelteMap } from "svelte/reactivity";

import { type Api, ApiError } from "../../api/client.ts";
import type { Entry, EventOf, OperationDetail } from "../../api/types.ts";
import type { Listener } from "../../state/store.svelte.ts";
import { type Activities, applyEntries, closeActivities, isCancelled, mergeSnapshot, NO_ACTIVITIES } from "./activityTree.ts";

export interface OperationActivities {
  readonly activities: Activities;
  /** Who cancelled the operation. */
  readonly by: string | null;
}

/** Events within this time are applied together. */
const TOGETHER_MS = 30;

export class ActivityStore {
  private readonly known = new SvelteMap<string, OperationActivities>();
  private readonly asked = new Set<string>();
  private readonly ended = new Map<string, { readonly at: number; readonly event: EventOf<"OperationEnded"> }>();
  private readonly api: Pick<Api, "operation">;
  private readonly thread: string;
  private readonly unsubscribe: () => void;
  private entries: Entry[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Pick<Api, "operation">, thread: string, subscribe: (listener: Listener) => () => void) {
    this.api = api;
    this.thread = thread;
    this.unsubscribe = subscribe((entry) => this.onEntry(entry));
  }

  stop(): void {
    this.unsubscribe();
    clearTimeout(this.timer);
  }

  /** Null if no activities are known. */
  of(operation: string | null): OperationActivities | null {
    const doing = operation === null ? undefined : this.known.get(operation);
    return doing?.activities.size ? doing : null;
  }

  /** Fetches the activities from before this page subscribed. */
  async ask(operation: string): Promise<void> {
    if (this.asked.has(operation)) return;
    this.asked.add(operation);
    try {
      this.take(operation, await this.api.operation(operation));
    } catch (error) {
      if (!(error instanceof ApiError)) this.asked.delete(operation); // the daemon is down: fetch again next time
    }
  }

  private take(operation: string, detail: OperationDetail): void {
    const all = mergeSnapshot(this.known.get(operation)?.activities ?? NO_ACTIVITIES, detail.activities);
    const ending = this.ended.get(operation); // it may have ended during the request
    const { cancelled_by: by } = ending?.event ?? detail;
    const over = ending?.at ?? detail.ended_at;
    this.known.set(operation, { activities: over === null ? all : closeActivities(all, isCancelled(ending?.event ?? detail), over), by });
  }

  private onEntry(entry: Entry | null): void {
    if (!entry) return this.again();
    const { event } = entry;
    const told = (event.kind === "ActivityStarted" || event.kind === "ActivityEnded") && event.thread === this.thread;
    if (!told && event.kind !== "OperationEnded") return;
    if (event.kind === "OperationEnded") {
      if (!this.known.has(event.operation) && !this.asked.has(event.operation)) return; // another thread's
      this.ended.set(event.operation, { at: entry.at, event });
    }
    this.entries.push(entry);
    this.timer ??= setTimeout(() => this.draw(), TOGETHER_MS);
  }

  private draw(): void {
    this.timer = undefined;
    const entries = this.entries;
    this.entries = [];
    const operations = new Set(entries.flatMap(({ event }) => ("operation" in event && event.operation ? [event.operation] : [])));
    for (const operation of operations) {
      const { activities, by } = this.known.get(operation) ?? { activities: NO_ACTIVITIES, by: null };
      this.known.set(operation, { activities: applyEntries(activities, entries, operation), by: this.ended.get(operation)?.event.cancelled_by ?? by });
    }
  }

  /** Events were missed: fetch running operations again. */
  private again(): void {
    this.entries = [];
    for (const operation of [...this.asked, ...this.known.keys()]) {
      if (this.ended.has(operation)) continue;
      this.asked.delete(operation);
      void this.ask(operation);
    }
  }
}
