/** The proposed file of a question, fetched from the daemon and polled while it is shown: it may change on disk. */
import { type Api, ApiError } from "../../api/client.ts";
import type { KnownApproval } from "../../state/model.ts";
import { type ReviewDraft, reviewDraftFor } from "./reviewDraft.svelte.ts";

/** Poll interval. */
const EVERY_MS = 3000;

export class Proposal {
  draft = $state.raw<ReviewDraft | null>(null);
  /** How the file differs from the one the question was asked about; null if it does not. */
  changed = $state<string | null>(null);
  /** How the file changed since, as a diff. */
  difference = $state("");
  /** Why there is no proposal. */
  problem = $state("");
  private readonly approval: KnownApproval;
  private readonly api: Pick<Api, "proposal">;

  constructor(approval: KnownApproval, api: Pick<Api, "proposal">) {
    this.approval = approval;
    this.api = api;
  }

  /** Fetches now, at an interval, and when the window gets the focus; returns the stop function. */
  watch(): () => void {
    const look = (): void => void this.look();
    const seen = setInterval(() => document.visibilityState === "visible" && look(), EVERY_MS);
    addEventListener("focus", look);
    look();
    return () => {
      clearInterval(seen);
      removeEventListener("focus", look);
    };
  }

  private async look(): Promise<void> {
    try {
      const came = await this.api.proposal(this.approval.id);
      const preview = this.approval.preview;
      this.draft = reviewDraftFor(this.approval.id, came, preview?.kind === "diff" ? preview : { diff: "", notes: [] });
      this.changed = came.changed;
      this.difference = came.difference;
    } catch (error) {
      // Keep the last proposal; a banner reports a daemon that is down.
      if (!this.draft) this.problem = error instanceof ApiError ? error.message : "The daemon did not answer. The file is read again in a moment.";
    }
  }
}
