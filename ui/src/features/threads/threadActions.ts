/**
 * Actions on threads: open, prompt, steer, stop, queue, fork, adopt, rename, delete, export, import.
 *
 * Sends the requests and shows their errors as toasts. The resulting events come back over the live socket, as in
 * every tab.
 */
import type { Api } from "../../api/client.ts";
import type { AgentSession, ForkBody, PromptBody, SettingBody, ThreadBody } from "../../api/types.ts";
import { saveFile } from "../../lib/browserFiles.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";

export class ThreadActions {
  private readonly api: Api;

  constructor(api: Api) {
    this.api = api;
  }

  /** Resolves to the new thread's id, or null if refused. */
  open(body: ThreadBody): Promise<string | null> {
    return asked(async () => (await this.api.openThread(body)).id);
  }

  async prompt(thread: string, body: PromptBody): Promise<boolean> {
    return (await asked(() => this.api.prompt(thread, { files: [], images: [], queue: false, steer: false, ...body }))) !== null;
  }

  async stop(operation: string): Promise<void> {
    const answer = await asked(() => this.api.cancelOperation(operation));
    if (answer && !answer.won) toasts.show("It had ended already.");
  }

  /** Cancels one activity of an operation. */
  cancelActivity(operation: string, activity: string): Promise<unknown> {
    return asked(() => this.api.cancelActivity(operation, activity));
  }

  /** Resolves to the fork's id. */
  fork(thread: string, body: ForkBody): Promise<string | null> {
    return asked(async () => (await this.api.fork(thread, { message: null, before: false, title: "", ...body })).id);
  }

  /** The sessions that an agent has kept, of one folder or of all; null if it cannot say. */
  sessions(agent: string, workspace: string | null): Promise<readonly AgentSession[] | null> {
    return asked(() => this.api.agentSessions(agent, workspace));
  }

  /** Continues a session of an agent as a thread; resolves to its id. */
  adopt(agent: string, session: string, workspace: string | null): Promise<string | null> {
    return asked(async () => (await this.api.adopt(agent, { session, workspace })).id);
  }

  /** Sends an edited message in a fork that ends before it. */
  async resend(thread: string, message: string, body: PromptBody): Promise<string | null> {
    const branch = await this.fork(thread, { message, before: true });
    if (branch) await this.prompt(branch, body);
    return branch;
  }

  choose(thread: string, body: SettingBody): Promise<unknown> {
    return asked(() => this.api.choose(thread, { id: "", ...body }));
  }

  async rename(thread: string, title: string): Promise<boolean> {
    return (await asked(() => this.api.renameThread(thread, title))) !== null;
  }

  async delete(thread: string): Promise<boolean> {
    return (await asked(async () => (await this.api.deleteThread(thread), true))) === true;
  }

  sendNow(thread: string, message: string): Promise<unknown> {
    return asked(() => this.api.sendQueued(thread, message));
  }

  async steerNow(thread: string, message: string): Promise<void> {
    const answer = await asked(() => this.api.steerQueued(thread, message));
    if (answer && !answer.steered) toasts.show("The agent did not take it. It stays in the queue.");
  }

  drop(thread: string, message: string): Promise<unknown> {
    return asked(() => this.api.dropQueued(thread, message));
  }

  async login(agent: string, method: string): Promise<void> {
    const done = await asked(async () => (await this.api.login(agent, method), true));
    if (done) toasts.show(`Logged in to ${agent}. Send your message again.`);
  }

  async save(thread: string, title: string, format: "md" | "json"): Promise<void> {
    const blob = await asked(() => this.api.exportThread(thread, format));
    if (blob) saveFile(blob, `${title.replace(/[^\w.-]+/g, "-").slice(0, 60) || "thread"}-${thread}.${format}`);
  }

  /** Imports a saved thread; resolves to its id. */
  async bring(file: File): Promise<string | null> {
    let thread: unknown;
    try {
      thread = JSON.parse(await file.text());
    } catch {
      toasts.show(`${file.name} is not a thread saved as JSON.`, "red");
      return null;
    }
    return asked(async () => (await this.api.importThread(thread)).id);
  }
}

async function asked<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    showError(error);
    return null;
  }
}
