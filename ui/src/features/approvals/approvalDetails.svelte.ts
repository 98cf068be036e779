/**
 * The selected approval, fetched whole: the event that opened it does not carry the tool's description, whether its
 * input can be edited, whether its folder is trusted, or which rules would match.
 *
 * It is fetched again when rules change, an answer was refused or the page reconnects.
 */
import type { Api } from "../../api/client.ts";
import type { ApprovalView } from "../../api/types.ts";
import { type TrackedApproval, withFetchedFacts } from "../../state/model.ts";

export class ApprovalDetails {
  private fetched = $state.raw<ApprovalView | null>(null);
  private readonly api: Pick<Api, "approval">;
  private wanted: string | null = null;

  constructor(api: Pick<Api, "approval">) {
    this.api = api;
  }

  async load(id: string | null): Promise<void> {
    this.wanted = id;
    if (!id) return;
    const fetched = await this.api.approval(id).catch(() => null); // keep the current view; a banner reports a daemon that is down
    if (fetched && this.wanted === id) this.fetched = fetched;
  }

  /** The approval was fetched. */
  has(id: string): boolean {
    return this.fetched?.id === id;
  }

  /** The approval with its fetched facts, if they are there. */
  merge(known: TrackedApproval): TrackedApproval {
    return this.fetched?.id === known.id ? withFetchedFacts(known, this.fetched) : known;
  }
}
