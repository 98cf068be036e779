/** The extension: connects to Handrail's daemon and puts its parts into the editor. */
import * as vscode from "vscode";

import { Daemon } from "./daemon.ts";
import { PageViews, VIEW } from "./pageView.ts";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Handrail", { log: true });
  const daemon = new Daemon(log);
  const pages = new PageViews(daemon, context.extensionUri);
  context.subscriptions.push(
    log,
    daemon,
    pages,
    vscode.window.registerWebviewViewProvider(VIEW, pages, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.commands.registerCommand("handrail.openInbox", () => pages.openSidebar("/")),
    vscode.commands.registerCommand("handrail.openTab", () => pages.openTab()),
    vscode.commands.registerCommand("handrail.start", () => daemon.start()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("handrail")) daemon.connect();
    }),
  );
  daemon.connect();
}
