/** Conversations in the clients' own files; fetched when the threads are opened, since no event tells of them. */
import { type Api, ApiError } from "../../api/client.ts";
import type { TranscriptView } from "../../api/types.ts";

const PAGE = 100;
const MOST = 500;

export class TranscriptList {
  list = $state.raw<readonly TranscriptView[]>([]);
  problem = $state("");
  /** Older ones may exist. */
  more = $state(false);
  private readonly api: Pick<Api, "transcripts">;

  constructor(api: Pick<Api, "transcripts">) {
    this.api = api;
  }

  refresh(): Promise<void> {
    return this.ask(Math.max(PAGE, this.list.length));
  }

  older(): Promise<void> {
    return this.ask(this.list.length + PAGE);
  }

  private async ask(wanted: number): Promise<void> {
    const limit = Math.min(wanted, MOST);
    try {
      const found = await this.api.transcripts(limit);
      this.list = found;
      this.more = found.length >= limit && limit < MOST;
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }
}

/** Its id in the page's URL, which is also that of the command line. */
export function transcriptId({ client, session }: Pick<TranscriptView, "client" | "session">): string {
  return `${client}:${session}`;
}
