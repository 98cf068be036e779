/**
 * All terminals: running ones first, then ended ones, newest first.
 *
 * Fetched again after each event about terminals, and polled for facts that no event reports (foreground program,
 * last output).
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { TerminalView } from "../../api/types.ts";

/** Poll interval for facts that no event reports. */
const LOOKS_MS = 2000;
/** With a search, which reads outputs, only each fifth look asks. */
const SEARCH_TICKS = 5;
/** After the last key. */
const REST_MS = 200;
const PAGE = 200;

export class TerminalList {
  list = $state.raw<readonly TerminalView[] | null>(null);
  problem = $state("");
  /** The search that the list answers. */
  searched = $state("");
  private readonly api: Pick<Api, "terminals">;
  private query = "";
  private ticks = 0;
  private typing: ReturnType<typeof setTimeout> | undefined;
  private asking = false;
  private again = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(api: Pick<Api, "terminals">) {
    this.api = api;
  }

  /** Polls until the returned function is called. */
  watch(): () => void {
    this.timer = setInterval(() => {
      this.ticks += 1;
      if (this.query && this.ticks % SEARCH_TICKS) return;
      if (!document.hidden && this.list?.some(({ running }) => running)) void this.refresh();
    }, LOOKS_MS);
    return () => {
      clearInterval(this.timer);
      clearTimeout(this.typing);
    };
  }

  /** Searches for what is typed, once it rests. */
  search(query: string): void {
    clearTimeout(this.typing);
    if (query.trim() === this.query) return;
    this.typing = setTimeout(() => {
      this.query = query.trim();
      void this.refresh();
    }, this.list ? REST_MS : 0);
  }

  /** One request at a time: events during a request lead to one more. */
  async refresh(): Promise<void> {
    this.again = true;
    if (this.asking) return;
    this.asking = true;
    while (this.again) {
      this.again = false;
      await this.ask();
    }
    this.asking = false;
  }

  private async ask(): Promise<void> {
    try {
      const q = this.query;
      const found = await this.api.terminals({ limit: PAGE, ...(q ? { q } : {}) });
      if (q !== this.query) return;
      this.searched = q;
      this.list = sortTerminals(found);
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }
}

export function sortTerminals(terminals: readonly TerminalView[]): TerminalView[] {
  return [...terminals].sort((a, b) => Number(b.running) - Number(a.running) || b.started_at - a.started_at);
}
