/**
 * The calls that match a filter, refreshed when the filter or the journal changes.
 *
 * At most one request runs at a time.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { CallView } from "../../api/types.ts";
import { filterQuery, parseFilter } from "./callFilter.ts";

/** Page size. */
const PAGE = 200;
/** The largest page that the daemon serves. */
const MOST = 1000;

export class CallHistory {
  calls = $state.raw<readonly CallView[] | null>(null);
  /** When the response arrived, on the page's clock: elapsed times count from here. */
  received = $state(0);
  problem = $state("");
  /** Older calls may exist. */
  more = $state(false);
  private readonly api: Api;
  private asking = false;
  private again: string | null = null;
  private text = "";

  constructor(api: Api) {
    this.api = api;
  }

  /** Queries this filter, or refreshes its results. */
  async find(text: string): Promise<void> {
    this.again = text;
    if (this.asking) return;
    this.asking = true;
    while (this.again !== null) {
      const words = this.again;
      this.again = null;
      await this.refresh(words);
    }
    this.asking = false;
  }

  /** Loads the next older page. */
  async older(): Promise<void> {
    const text = this.text;
    const found = await this.ask(text, PAGE, this.end(this.calls ?? []));
    if (found === null || text !== this.text) return;
    const shown = this.calls ?? []; // read it again: a refresh may have happened meanwhile
    const end = this.end(shown);
    this.calls = [...shown, ...found.filter((call) => call.seq < end)];
    this.more = found.length === PAGE;
  }

  /** Refreshes the newest calls, as many as are shown; older ones than one response holds stay as they are. */
  private async refresh(text: string): Promise<void> {
    const known = text === this.text ? (this.calls?.length ?? 0) : 0;
    const limit = Math.min(MOST, Math.max(PAGE, known));
    const found = await this.ask(text, limit);
    if (found === null) return;
    const full = found.length === limit;
    const shown = text === this.text ? this.calls : null;
    const end = this.end(found);
    if (shown === null || !full) this.more = full; // otherwise nothing was cut off, and `more` is unchanged
    this.text = text;
    this.calls = full && shown !== null ? [...found, ...shown.filter((call) => call.seq < end)] : found;
    this.received = performance.now();
  }

  private end(calls: readonly CallView[]): number {
    return calls.at(-1)?.seq ?? Number.MAX_SAFE_INTEGER;
  }

  private async ask(text: string, limit: number, before?: number): Promise<readonly CallView[] | null> {
    const query = { ...filterQuery(parseFilter(text)), limit, ...(before === undefined ? {} : { before }) };
    try {
      const found = await this.api.calls(query);
      this.problem = "";
      return found;
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
      return null; // a banner reports a daemon that is down
    }
  }
}
