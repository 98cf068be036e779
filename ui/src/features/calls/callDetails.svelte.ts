/** The detail view of the selected call, fetched again after each event about it. */
import { type Api, ApiError } from "../../api/client.ts";
import type { CallDetail } from "../../api/types.ts";

export class CallDetails {
  current = $state.raw<CallDetail | null>(null);
  problem = $state("");
  private readonly api: Api;
  private wanted = "";
  private loading = false;
  private again = false;

  constructor(api: Api) {
    this.api = api;
  }

  /** One request at a time: events during a request lead to one more. */
  async show(id: string | null): Promise<void> {
    if (this.wanted !== (id ?? "")) {
      this.current = null;
      this.problem = "";
    }
    this.wanted = id ?? "";
    this.again = true;
    if (this.loading) return;
    this.loading = true;
    while (this.again && this.wanted) {
      this.again = false;
      await this.load(this.wanted);
    }
    this.loading = false;
  }

  private async load(id: string): Promise<void> {
    try {
      const detail = await this.api.call(id);
      if (this.wanted === id) this.current = detail;
    } catch (error) {
      if (this.wanted === id && error instanceof ApiError) this.problem = error.message;
    }
  }
}
