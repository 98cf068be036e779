/** Answers to approvals, and the sentences of the daemon about them. */
import * as vscode from "vscode";

import type { ApprovalView, EditView } from "../../../ui/src/api/types.ts";
import type { Daemon } from "./daemon.ts";

type Seen = Pick<ApprovalView, "id" | "digest">;

export class Answers {
  constructor(private readonly daemon: Daemon) {}

  /** Allows what the person saw; true if this answer won. */
  allow(approval: Seen): Promise<boolean> {
    return this.send(approval.id, { answer: "allow", digest: approval.digest });
  }

  /** Allows a write with this content instead of the proposed one. */
  allowContent(approval: Seen, preview: EditView, content: string): Promise<boolean> {
    return this.send(approval.id, { answer: "allow", digest: preview.digest, content });
  }

  deny(approval: Seen, reason = ""): Promise<boolean> {
    return this.send(approval.id, { answer: "deny", digest: approval.digest, reason });
  }

  /** What would happen if the person allowed this content. Rejects with the daemon's sentence. */
  preview(approval: Seen, content: string): Promise<EditView> {
    return this.daemon.call("POST", `/api/approvals/${approval.id}/edit`, { content });
  }

  private async send(id: string, body: unknown): Promise<boolean> {
    try {
      await this.daemon.call("POST", `/api/approvals/${id}/answer`, body);
      return true;
    } catch (error) {
      showProblem(error);
      return false;
    }
  }
}

/** Shows a failure in the daemon's words. */
export function showProblem(error: unknown): void {
  void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
}

/** Why a call is risky, as one line. */
export function riskText({ risk, reasons }: Pick<ApprovalView, "risk" | "reasons">): string {
  return `${risk.toUpperCase()} risk${reasons.length ? `: ${reasons.join(", ")}` : ""}`;
}
