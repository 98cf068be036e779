/**
 * Actions on a call: answer, cancel, complete, stop.
 *
 * Sends the requests and shows their errors as toasts. It does not change the model: the resulting events come back
 * over the live socket, as in every tab.
 */
import type { Api } from "../../api/client.ts";
import type { AnswerBody, CompleteBody, OpenBody } from "../../api/types.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";

export class CallActions {
  private readonly api: Api;
  private readonly underway = new Set<string>();

  constructor(api: Api) {
    this.api = api;
  }

  answer(approval: string, body: AnswerBody): Promise<boolean> {
    return this.once(approval, () => this.api.answer(approval, body));
  }

  /** A request about it is in flight. */
  busy(thing: string): boolean {
    return this.underway.has(thing);
  }

  cancel(call: string): Promise<boolean> {
    return this.once(call, async () => late(await this.api.cancel(call)));
  }

  complete(call: string, body: CompleteBody): Promise<boolean> {
    return this.once(call, async () => late(await this.api.complete(call, body)));
  }

  stopTerminal(terminal: string): Promise<boolean> {
    return this.once(terminal, () => this.api.closeTerminal(terminal));
  }

  /** Ends the commands whose agents are gone. */
  stopAgentGone(): Promise<boolean> {
    return this.once("agent gone", () => this.api.closeAgentGone());
  }

  /** Opens a terminal of the person; resolves to its id, or null if refused. */
  async openTerminal(body: OpenBody): Promise<string | null> {
    let id: string | null = null;
    await this.once("new terminal", async () => (id = (await this.api.openTerminal(body)).id));
    return id;
  }

  /** One request per thing at a time, so that a double click sends one. */
  private async once(thing: string, ask: () => Promise<unknown>): Promise<boolean> {
    if (this.underway.has(thing)) return false;
    this.underway.add(thing);
    try {
      await ask();
      return true;
    } catch (error) {
      showError(error);
      return false;
    } finally {
      this.underway.delete(thing);
    }
  }
}

function late(forced: { won: boolean; message: string }): void {
  if (!forced.won) toasts.show(forced.message);
}
