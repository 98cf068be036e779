/** The MCP servers behind the gate, fetched again after events; adds, removes, restarts and tries them. */
import { type Api, ApiError } from "../../api/client.ts";
import type { ServerBody, ServerLogView, ServerToolView, ServerTrialView, ServerView } from "../../api/types.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";

/** Between two requests: events can come fast. */
const PAUSE_MS = 1000;

export class ServerStore {
  list = $state.raw<readonly ServerView[] | null>(null);
  problem = $state("");
  /** How the last trial of each server went. */
  trials = $state.raw<ReadonlyMap<string, ServerTrialView>>(new Map());
  /** Servers that are started for a trial, or ended, at the moment. */
  busy = $state.raw<ReadonlySet<string>>(new Set());
  private readonly api: Api;
  private asking: Promise<void> | null = null;
  private again = false;

  constructor(api: Api) {
    this.api = api;
  }

  /** One request at a time, with a pause: events meanwhile lead to one more. */
  refresh(): void {
    this.again = true;
    this.asking ??= this.askAgain();
  }

  logs(name: string): Promise<ServerLogView> {
    return this.api.serverLogs(name);
  }

  /** Resolves to an error message, or "". */
  async add(body: ServerBody): Promise<string> {
    try {
      const made = await this.api.addServer(body);
      toasts.show(`Added: ${made.name}. Agents can use it at once.`);
      await this.ask();
      void this.test(made.name);
      return "";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async remove(name: string): Promise<void> {
    await this.work(name, () => this.api.removeServer(name).then(() => toasts.show(`Removed: ${name}`)));
  }

  async restart(name: string): Promise<void> {
    await this.work(name, () => this.api.restartServer(name).then(() => toasts.show(`${name} has ended. It is started again on its next use.`)));
  }

  async test(name: string): Promise<void> {
    await this.work(name, async () => {
      this.trials = new Map(this.trials).set(name, await this.api.testServer(name));
    });
  }

  async accept(server: string, { own_name, digest }: ServerToolView): Promise<void> {
    await this.work(server, () => this.api.acceptServerTool(server, own_name, digest));
  }

  private async work(name: string, act: () => Promise<unknown>): Promise<void> {
    this.busy = new Set(this.busy).add(name);
    try {
      await act();
    } catch (error) {
      showError(error);
    } finally {
      this.busy = new Set([...this.busy].filter((one) => one !== name));
      await this.ask();
    }
  }

  private async askAgain(): Promise<void> {
    while (this.again) {
      this.again = false;
      await this.ask();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    this.asking = null;
  }

  private async ask(): Promise<void> {
    try {
      this.list = await this.api.servers();
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }
}
