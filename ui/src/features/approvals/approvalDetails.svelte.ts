/**
 * The whole of the question a person looks at: what the live socket's fact of it does not carry (the tool's own
 * words, how long such calls take, which rules would have decided it).
 *
 * Owns asking for it, again when rules change or an answer was refused. It does not know views or guards.
 */
import type { Api } from "../../api/client.ts";
import type { ApprovalView } from "../../api/types.ts";
import type { TrackedApproval } from "../../state/model.ts";

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
    const fetched = await this.api.approval(id).catch(() => null); // what is shown already stays; a banner tells of a daemon that is away
    if (fetched && this.wanted === id) this.fetched = fetched;
  }

  /** All there is to know has come. */
  has(id: string): boolean {
    return this.fetched?.id === id;
  }

  /** The question as it stands: its state as the live socket tells it, the rest as it was asked for. */
  merge(known: TrackedApproval): TrackedApproval {
    const fetched = this.fetched;
    if (fetched?.id !== known.id) return known;
    const { status, reason, by, edited, client_gone, since } = known;
    return { ...fetched, status, reason, by, edited, client_gone, since };
  }
}
