/** The installed agents, fetched when the person is about to choose one. */
import { type Api, ApiError } from "../../api/client.ts";
import type { AgentView } from "../../api/types.ts";

export class Agents {
  list = $state.raw<readonly AgentView[] | null>(null);
  problem = $state("");
  private readonly api: Pick<Api, "agents">;

  constructor(api: Pick<Api, "agents">) {
    this.api = api;
  }

  async refresh(): Promise<void> {
    try {
      this.list = await this.api.agents();
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }

  /** Installed agents. */
  readonly found = $derived((this.list ?? []).filter(({ found }) => found));
}
