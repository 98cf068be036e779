/**
 * What needs the person, outside of the sidebar: status bar, badge, notifications.
 *
 * A notification can answer a question of low or medium risk, if all of it fits in there. High risk is only shown.
 */
import * as vscode from "vscode";

import type { ApprovalView } from "../../../ui/src/api/types.ts";
import { type Answers, riskText } from "./answers.ts";
import type { Daemon } from "./daemon.ts";
import type { Inbox } from "./inbox.ts";
import { canAnswerHere } from "./notification.ts";
import type { PageViews } from "./pageView.ts";

/** Notifications at a time. The status bar counts the rest. */
const MOST_SHOWN = 3;

export class Attention implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("handrail.status", vscode.StatusBarAlignment.Left, 50);
  /** Approvals that were announced in this window. */
  private readonly announced = new Set<string>();
  /** Approvals whose notification is shown. One that was answered elsewhere stays there: no extension can close it. */
  private readonly shown = new Set<string>();
  private readonly held: vscode.Disposable[];
  show: (approval: ApprovalView) => void = () => undefined;

  constructor(
    private readonly daemon: Daemon,
    private readonly inbox: Inbox,
    private readonly pages: PageViews,
    private readonly answers: Answers,
  ) {
    this.item.name = "Handrail";
    this.held = [this.item, inbox.onChange(() => this.update()), daemon.onChange(() => this.update())];
    this.update();
  }

  dispose(): void {
    for (const each of this.held) each.dispose();
  }

  private update(): void {
    const count = this.inbox.approvals.length;
    this.draw(count);
    for (const approval of this.inbox.approvals) this.announce(approval);
  }

  private draw(count: number): void {
    const standing = this.daemon.standing;
    const risk = this.inbox.risk ? `, highest risk ${this.inbox.risk}` : ""; // high contrast has no background
    this.item.command = "handrail.openInbox";
    this.item.backgroundColor = undefined;
    if (standing.kind !== "live") {
      this.item.text = "$(debug-disconnect) Handrail";
      this.item.tooltip = this.daemon.problem;
    } else if (!standing.approves && standing.number !== null) {
      this.item.text = `$(lock) Handrail: pair ${standing.number}`;
      this.item.tooltip = standing.why;
    } else {
      const running = this.inbox.running.length;
      const paused = this.inbox.paused;
      this.item.text = `${paused ? "$(debug-pause)" : "$(shield)"} ${count}${running ? ` $(sync~spin) ${running}` : ""}`;
      this.item.tooltip = [...(paused ? ["All agents are paused: new calls wait for you"] : []), `${count} ${count === 1 ? "call needs" : "calls need"} you${risk}, ${running} running`, standing.why, standing.update].filter(Boolean).join("\n");
      this.item.backgroundColor = background(this.inbox.risk);
    }
    this.item.accessibilityInformation = { label: `Handrail: ${this.inbox.paused ? "all agents are paused, " : ""}${count} need you${risk}` };
    this.item.show();
  }

  private announce(approval: ApprovalView): void {
    if (this.announced.has(approval.id)) return;
    this.announced.add(approval.id);
    const wanted = vscode.workspace.getConfiguration("handrail").get<boolean>("notifications", true);
    if (wanted && this.daemon.approves && !this.pages.visible && this.waitingHere < MOST_SHOWN) void this.notify(approval);
  }

  /** How many notifications still wait for an answer. */
  private get waitingHere(): number {
    return this.inbox.approvals.filter(({ id }) => this.shown.has(id)).length;
  }

  private async notify(approval: ApprovalView): Promise<void> {
    this.shown.add(approval.id);
    try {
      const text = `${approval.caller.client} asks: ${approval.title} (${riskText(approval)})`;
      const buttons = canAnswerHere(approval) ? ["Allow once", "Deny", "Show"] : ["Show"];
      const show = approval.risk === "high" ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
      const choice = await show(text, ...buttons);
      if (choice === "Allow once") await this.answers.allow(approval);
      else if (choice === "Deny") await this.answers.deny(approval);
      else if (choice === "Show") this.show(approval);
    } finally {
      this.shown.delete(approval.id);
    }
  }
}

function background(risk: ApprovalView["risk"] | null): vscode.ThemeColor | undefined {
  if (risk === "high") return new vscode.ThemeColor("statusBarItem.errorBackground");
  return risk === "medium" ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
}
