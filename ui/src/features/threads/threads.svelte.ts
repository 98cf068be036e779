/** All threads, the most recently active first; fetched again after each event about threads. */
import { type Api, ApiError } from "../../api/client.ts";
import type { ThreadView } from "../../api/types.ts";

const PAGE = 200;

export class ThreadList {
  list = $state.raw<readonly ThreadView[] | null>(null);
  problem = $state("");
  /** Older threads may exist. */
  more = $state(false);
  private readonly api: Pick<Api, "threads">;
  private asking = false;
  private again = false;

  constructor(api: Pick<Api, "threads">) {
    this.api = api;
  }

  get(id: string): ThreadView | undefined {
    return this.list?.find((thread) => thread.id === id);
  }

  /** The folders of all threads. */
  readonly workspaces = $derived([...new Set((this.list ?? []).flatMap(({ workspace }) => workspace ?? []))]);

  /** One request at a time: events during a request lead to one more. */
  async refresh(): Promise<void> {
    this.again = true;
    if (this.asking) return;
    this.asking = true;
    while (this.again) {
      this.again = false;
      await this.ask(Math.max(PAGE, this.list?.length ?? 0));
    }
    this.asking = false;
  }

  async older(): Promise<void> {
    await this.ask((this.list?.length ?? 0) + PAGE);
  }

  private async ask(limit: number): Promise<void> {
    try {
      const found = await this.api.threads({ limit: Math.min(limit, 1000) });
      this.list = found;
      this.more = found.length >= limit && limit < 1000;
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }
}
