/** Files that calls changed while this window was open: a lens that names the call and undoes it, and its lines marked in the gutter. */
import * as vscode from "vscode";

import type { UndoView } from "../../../ui/src/api/types.ts";
import { showProblem } from "./answers.ts";
import type { Daemon } from "./daemon.ts";
import type { Inbox } from "./inbox.ts";

export class WrittenFiles implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changes.event;
  private readonly mark: vscode.TextEditorDecorationType;
  private readonly held: vscode.Disposable[];

  constructor(
    private readonly daemon: Daemon,
    private readonly inbox: Inbox,
    root: vscode.Uri,
  ) {
    this.mark = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(root, "media", "written.svg"),
      gutterIconSize: "contain",
      overviewRulerColor: new vscode.ThemeColor("editorGutter.addedBackground"),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
    this.held = [
      this.changes,
      this.mark,
      inbox.onWrite(() => {
        this.changes.fire();
        this.draw();
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
    ];
  }

  dispose(): void {
    for (const each of this.held) each.dispose();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const calls = [...new Set(this.inbox.written.filter(({ path }) => path === document.uri.fsPath).map(({ call }) => call))];
    const top = new vscode.Range(0, 0, 0, 0);
    return calls.slice(-3).map((call) => new vscode.CodeLens(top, { title: `written by call ${call} · undo`, command: "handrail.undoCall", arguments: [call] }));
  }

  /** Shows what an undo would do, and does it if the person says so. */
  async undo(call: string): Promise<void> {
    try {
      const plan = await this.daemon.call<UndoView>("GET", `/api/undo/${encodeURIComponent(call)}`);
      const detail = [...plan.files.map(({ path, says }) => `${path}: ${says}`), ...plan.not_covered].join("\n");
      const choice = await vscode.window.showWarningMessage(`Undo ${plan.title}?`, { modal: true, detail }, "Undo");
      if (choice !== "Undo") return;
      await this.daemon.call("POST", `/api/undo/${encodeURIComponent(call)}`, { digest: plan.digest });
      this.inbox.forget(call);
    } catch (error) {
      showProblem(error);
    }
  }

  async undoLast(): Promise<void> {
    const last = this.inbox.written.at(-1);
    if (last) await this.undo(last.call);
    else void vscode.window.showInformationMessage("No call has changed a file since this window was opened.");
  }

  private draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const path = editor.document.uri.scheme === "file" ? editor.document.uri.fsPath : null;
      const last = this.inbox.written.filter((file) => file.path === path).at(-1);
      editor.setDecorations(this.mark, (last?.lines ?? []).map((line) => new vscode.Range(line, 0, line, 0)));
    }
  }
}
