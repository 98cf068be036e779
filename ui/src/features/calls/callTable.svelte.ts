/**
 * The table of calls: pages of a query, loaded where they are looked at.
 *
 * All pages belong to one snapshot (`upto`), so that rows keep their places while new calls arrive. A new query starts
 * over. At most one request for rows runs at a time.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { CallCounts, CallView } from "../../api/types.ts";
import type { Sort } from "./callColumns.svelte.ts";

export const PAGE = 200;

export interface TableQuery {
  readonly q: string;
  readonly sort: Sort;
  readonly ascending: boolean;
}

export class CallTable {
  /** The loaded pages, by number. Null before the first answer. */
  pages = $state.raw<ReadonlyMap<number, readonly CallView[]> | null>(null);
  counts = $state.raw<CallCounts | null>(null);
  problem = $state("");
  /** When the newest page arrived, on the page's clock: elapsed times count from here. */
  received = $state(0);
  /** The newest call of the snapshot. */
  upto = $state(0);
  private readonly api: Pick<Api, "callTable" | "callCounts">;
  private query: TableQuery = { q: "", sort: "time", ascending: false };
  private asking = false;
  private next: TableQuery | null = null;
  private wanted: readonly number[] = [];
  private counting = false;
  private uncounted: string | null = null;

  constructor(api: Pick<Api, "callTable" | "callCounts">) {
    this.api = api;
  }

  /** The number of calls: all pages but the last are full. */
  get total(): number {
    const known = Math.max(0, ...[...(this.pages ?? [])].map(([page, calls]) => page * PAGE + calls.length));
    const complete = [...(this.pages?.values() ?? [])].some((calls) => calls.length < PAGE);
    return complete ? known : Math.max(known, this.counts?.total ?? 0);
  }

  /** Queries the first page, or refreshes it: the latest query wins. */
  async find(query: TableQuery): Promise<void> {
    this.next = query;
    await this.work();
  }

  /** Loads these pages, the first one first; pages wanted before and not any more are dropped. */
  async want(pages: readonly number[]): Promise<void> {
    this.wanted = pages.filter((page) => this.pages && !this.pages.has(page));
    await this.work();
  }

  private async work(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    while (this.next !== null || this.wanted.length) {
      if (this.next !== null) await this.begin(this.next);
      else await this.load(this.wanted[0] ?? 0);
    }
    this.asking = false;
  }

  private async begin(query: TableQuery): Promise<void> {
    this.next = null;
    this.wanted = [];
    const same = JSON.stringify(query) === JSON.stringify(this.query);
    const found = await this.ask(() => this.api.callTable({ ...query, limit: PAGE }));
    if (found === null || this.next !== null) return;
    this.query = query;
    this.upto = found.upto;
    if (!same) this.counts = null;
    this.pages = new Map([[0, found.calls]]);
    this.received = performance.now();
    void this.count(query.q);
  }

  private async load(page: number): Promise<void> {
    const query = this.query;
    this.wanted = this.wanted.filter((one) => one !== page);
    const found = await this.ask(() => this.api.callTable({ ...query, upto: this.upto, offset: page * PAGE, limit: PAGE }));
    if (found === null || query !== this.query || found.upto !== this.upto) return;
    this.pages = new Map([...(this.pages ?? []), [page, found.calls]]);
    this.received = performance.now();
  }

  /** Counts the calls of the newest query; one request at a time, and none for a query that was replaced meanwhile. */
  private async count(q: string): Promise<void> {
    this.uncounted = q;
    if (this.counting) return;
    this.counting = true;
    while (this.uncounted !== null) {
      const asked: string = this.uncounted;
      this.uncounted = null;
      const counts = await this.api.callCounts({ q: asked }).catch(() => null);
      if (counts && this.uncounted === null && asked === this.query.q) this.counts = counts;
    }
    this.counting = false;
  }

  private async ask<Answer>(send: () => Promise<Answer>): Promise<Answer | null> {
    try {
      const found = await send();
      this.problem = "";
      return found;
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
      return null; // a banner reports a daemon that is down
    }
  }
}
