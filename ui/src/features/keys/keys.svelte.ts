/** Which API keys Handrail's own agent has. A key itself is only passed through, never kept. */
import type { Api } from "../../api/client.ts";
import type { KeysView, Provider } from "../../api/types.ts";

export class KeyStore {
  view = $state.raw<KeysView | null>(null);
  private readonly api: Pick<Api, "keys" | "storeKey" | "removeKey">;

  constructor(api: Pick<Api, "keys" | "storeKey" | "removeKey">) {
    this.api = api;
  }

  /** Our own agent has no key. False while that is not known. */
  get missing(): boolean {
    return this.view !== null && !this.view.other && !this.view.keys.some(({ stored }) => stored);
  }

  async refresh(): Promise<void> {
    this.view = await this.api.keys().catch(() => this.view);
  }

  /** Stores a key in the system's keyring. Fails with the daemon's sentence. */
  async store(provider: Provider, key: string): Promise<void> {
    await this.api.storeKey(provider, key);
    await this.refresh();
  }

  async remove(provider: Provider): Promise<void> {
    await this.api.removeKey(provider);
    await this.refresh();
  }
}
