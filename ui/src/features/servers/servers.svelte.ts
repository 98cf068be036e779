/** The MCP servers behind the gate, fetched again after events; adds, removes, restarts and tries them. */
import { type Api, ApiError } from "../../api/client.ts";
import type { SecretView, ServerBody, ServerLoginView, ServerLogView, ServerToolView, ServerTrialView, ServerView } from "../../api/types.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";

/** Between two requests: events can come fast. */
const PAUSE_MS = 1000;
/** Between two looks at a sign-in that is under way: no event tells of its end. */
const SIGN_IN_POLL_MS = 2000;

export class ServerStore {
  list = $state.raw<readonly ServerView[] | null>(null);
  problem = $state("");
  /** Null where they are not shown, as on a paired device. */
  secrets = $state.raw<readonly SecretView[] | null>(null);
  /** The sign-ins to servers over HTTP, by server. */
  logins = $state.raw<ReadonlyMap<string, ServerLoginView>>(new Map());
  /** Where a person signs in, while that is under way. */
  links = $state.raw<ReadonlyMap<string, string>>(new Map());
  /** How the last trial of each server went. */
  trials = $state.raw<ReadonlyMap<string, ServerTrialView>>(new Map());
  /** Servers that are started for a trial, or ended, at the moment. */
  busy = $state.raw<ReadonlySet<string>>(new Set());
  private readonly api: Api;
  private asking: Promise<void> | null = null;
  private again = false;
  private polling: ReturnType<typeof setTimeout> | undefined;

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
    await this.work(name, () => this.api.restartServer(name).then(() => toasts.show(`${name} is started again on its next use.`)));
  }

  async test(name: string): Promise<void> {
    await this.work(name, async () => {
      this.trials = new Map(this.trials).set(name, await this.api.testServer(name));
    });
  }

  /** Opens the sign-in page in a new tab. Its link stays on the card, in case the browser blocks the tab. */
  async signIn(name: string): Promise<void> {
    await this.work(name, async () => {
      const { url } = await this.api.beginLogin(name);
      this.links = new Map(this.links).set(name, url);
      window.open(url, "_blank", "noopener,noreferrer");
    });
  }

  /** What failed before a sign-in says nothing any more. */
  private forgetTrial(name: string): void {
    this.trials = new Map([...this.trials].filter(([one]) => one !== name));
  }

  async signOut(name: string): Promise<void> {
    await this.work(name, () => this.api.forgetLogin(name).then(() => toasts.show(`Signed out of ${name}`)));
  }

  /** Resolves to an error message, or "". */
  async storeSecret(name: string, value: string): Promise<string> {
    try {
      await this.api.storeSecret(name, value);
      toasts.show(`Stored: ${name}. Servers get it when they are started next.`);
      await this.ask();
      return "";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async removeSecret(name: string): Promise<void> {
    await this.work(name, () => this.api.removeSecret(name).then(() => toasts.show(`Removed: ${name}`)));
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
      await this.askForSecrets();
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }

  /** Secrets and sign-ins, which a paired device may not see. */
  private async askForSecrets(): Promise<void> {
    try {
      const [secrets, logins] = await Promise.all([this.api.secrets(), this.api.logins()]);
      this.secrets = secrets;
      for (const { server, state } of logins) if (state === "done" && this.logins.get(server)?.state === "pending") this.forgetTrial(server);
      this.logins = new Map(logins.map((login) => [login.server, login]));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.secrets = null;
    }
    const pending = [...this.logins.values()].filter((login) => login.state === "pending").map((login) => login.server);
    this.links = new Map([...this.links].filter(([name]) => pending.includes(name)));
    clearTimeout(this.polling);
    if (pending.length) this.polling = setTimeout(() => this.refresh(), SIGN_IN_POLL_MS);
  }
}
