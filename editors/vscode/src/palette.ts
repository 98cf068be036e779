/** Commands of the palette about calls and threads. None of them approves anything. */
import * as vscode from "vscode";

import type { CallView, ThreadView } from "../../../ui/src/api/types.ts";
import { showProblem } from "./answers.ts";
import type { Daemon } from "./daemon.ts";
import { daemonEnvironment } from "./daemonPaths.ts";
import type { Inbox } from "./inbox.ts";
import type { PageViews } from "./pageView.ts";

type Verb = "cancel" | "complete";

export class Palette {
  constructor(
    private readonly daemon: Daemon,
    private readonly inbox: Inbox,
    private readonly pages: PageViews,
  ) {}

  /** Cancels or completes the running call; lets the person choose if there are several. */
  async end(verb: Verb): Promise<void> {
    const call = await this.pick(verb === "cancel" ? "Cancel a call" : "Complete a call: its agent gets the output so far");
    if (call) await this.send(verb, call.id);
  }

  /** Cancels all that runs, after a question. */
  async stopAll(): Promise<void> {
    const { running } = this.inbox;
    if (!running.length) return void vscode.window.showInformationMessage(this.daemon.problem || "No call is running.");
    const detail = running.map(({ title }) => title).join("\n");
    const choice = await vscode.window.showWarningMessage(`Cancel ${running.length} running ${running.length === 1 ? "call" : "calls"}?`, { modal: true, detail }, "Cancel them");
    if (choice === "Cancel them") await Promise.all(running.map(({ id }) => this.send("cancel", id)));
  }

  async openThread(): Promise<void> {
    try {
      const threads = await this.daemon.call<ThreadView[]>("GET", "/api/threads");
      const rows = threads.map((thread) => ({ label: thread.title || thread.id, description: thread.id, id: thread.id }));
      const choice = await vscode.window.showQuickPick([{ label: "$(add) New thread", description: "", id: "new" }, ...rows], { title: "Open a thread" });
      if (choice) await this.pages.openSidebar(`/t/${choice.id}`);
    } catch (error) {
      showProblem(error);
    }
  }

  /** In a terminal, where the person sees what will be changed and confirms it. */
  connectAgent(): void {
    const settings = vscode.workspace.getConfiguration("handrail");
    const terminal = vscode.window.createTerminal({ name: "Connect an agent", env: daemonEnvironment(settings.get("home", "")) });
    terminal.show();
    terminal.sendText(`${settings.get("command", "handrail")} connect`);
  }

  private async pick(title: string): Promise<CallView | undefined> {
    const { running } = this.inbox;
    if (running.length === 0) void vscode.window.showInformationMessage(this.daemon.problem || "No call is running.");
    if (running.length < 2) return running[0];
    const rows = running.map((call) => ({ label: call.title, description: `${call.caller.client} ${call.id}`, call }));
    return (await vscode.window.showQuickPick(rows, { title }))?.call;
  }

  private async send(verb: Verb, id: string): Promise<void> {
    try {
      const { won, message } = await this.daemon.call<{ won: boolean; message: string }>("POST", `/api/calls/${id}/${verb}`, verb === "complete" ? {} : undefined);
      if (!won) void vscode.window.showInformationMessage(message);
    } catch (error) {
      showProblem(error);
    }
  }
}
