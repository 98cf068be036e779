/**
 * The calls a filter finds, as the daemon knows them, brought up to date by what the page hears.
 *
 * Owns asking again when the filter or the journal moves on, never more than one request at a time.
 */
import { type Api, Refused } from "../link/api.ts";
import { parseFilter, query } from "../text/filter.ts";
import type { CallView } from "../types.ts";

export const PAGE = 200;
/** The most one request may ask for. */
export const MOST = 1000;

export class Found {
  calls = $state.raw<readonly CallView[] | null>(null);
  /** When the answer came, on the page's clock: elapsed times count from here. */
  received = $state(0);
  problem = $state("");
  limit = $state(PAGE);
  private readonly api: Api;
  private asking = false;
  private again: string | null = null;

  constructor(api: Api) {
    this.api = api;
  }

  async find(text: string): Promise<void> {
    this.again = text;
    if (this.asking) return;
    this.asking = true;
    while (this.again !== null) {
      const words = this.again;
      this.again = null;
      await this.ask(words);
    }
    this.asking = false;
  }

  private async ask(text: string): Promise<void> {
    const asked = [query(parseFilter(text)), `limit=${this.limit}`].filter(Boolean).join("&");
    try {
      this.calls = await this.api.calls(asked);
      this.received = performance.now();
      this.problem = "";
    } catch (error) {
      if (error instanceof Refused) this.problem = error.message;
    }
  }
}
