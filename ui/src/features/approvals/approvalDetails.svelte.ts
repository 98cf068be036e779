/**
 * The whole of the question a person looks at: what the live socket's fact of it does not carry (the tool's own
 * words, how long such calls take, which rules would have decided it).
 *
 * Owns asking for it, again when rules change or an answer was refused. It does not know views or guards.
 */
import type { Api } from "../../api/client.ts";
import type { ApprovalView } from "../../api/types.ts";
import type { TrackedApproval } from "../../state/model.ts";

export class Question {
  private came = $state.raw<ApprovalView | null>(null);
  private readonly api: Pick<Api, "approval">;
  private wanted: string | null = null;

  constructor(api: Pick<Api, "approval">) {
    this.api = api;
  }

  async show(id: string | null): Promise<void> {
    this.wanted = id;
    if (!id) return;
    const came = await this.api.approval(id).catch(() => null); // what is shown already stays; a banner tells of a daemon that is away
    if (came && this.wanted === id) this.came = came;
  }

  /** All there is to know has come. */
  knows(id: string): boolean {
    return this.came?.id === id;
  }

  /** The question as it stands: its state as the live socket tells it, the rest as it was asked for. */
  of(known: TrackedApproval): TrackedApproval {
    const came = this.came;
    if (came?.id !== known.id) return known;
    const { status, reason, by, edited, client_gone, since } = known;
    return { ...came, status, reason, by, edited, client_gone, since };
  }
}
