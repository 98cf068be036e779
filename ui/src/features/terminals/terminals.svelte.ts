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
const PAGE = 200;

export class TerminalList {
  list = $state.raw<readonly TerminalView[] | null>(null);
  problem = $state("");
  private readonly api: Pick<Api, "terminals">;
  private asking = false;
  private again = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(api: Pick<Api, "terminals">) {
    this.api = api;
  }

  /** Polls until the returned function is called. */
  watch(): () => void {
    this.timer = setInterval(() => {
      if (!document.hidden && this.list?.some(({ running }) => running)) void this.refresh();
    }, LOOKS_MS);
    return () => clearInterval(this.timer);
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
      const found = await this.api.terminals({ limit: PAGE });
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
