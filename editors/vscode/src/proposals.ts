/**
 * Writes that wait for an answer, in the editor's own diff editor: left as the file is, right as proposed and editable.
 *
 * The right side is a file of a virtual file system. Its edits live in memory until the person allows them, and the agent is
 * told what was really written.
 */
import * as vscode from "vscode";

import type { ApprovalView, ProposalView } from "../../../ui/src/api/types.ts";
import { type Answers, riskText, showProblem } from "./answers.ts";
import type { Daemon } from "./daemon.ts";
import type { Inbox } from "./inbox.ts";

export const SCHEME = "handrail-proposal";
const TREE = "handrail.proposals";
/** A button under a person who was typing does nothing yet. */
const GUARD_MS = 700;

type Side = "before" | "after";

interface Opened {
  readonly approval: ApprovalView;
  readonly proposal: ProposalView;
  /** The right side, as edited. */
  after: string;
  /** When its editor became active. */
  shownAt: number;
}

export class Proposals implements vscode.FileSystemProvider, vscode.TreeDataProvider<ApprovalView>, vscode.Disposable {
  private readonly files = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.files.event;
  private readonly rows = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.rows.event;
  private readonly opened = new Map<string, Opened>();
  private readonly tree: vscode.TreeView<ApprovalView>;
  private readonly held: vscode.Disposable[];

  constructor(
    private readonly daemon: Daemon,
    private readonly inbox: Inbox,
    private readonly answers: Answers,
  ) {
    this.tree = vscode.window.createTreeView(TREE, { treeDataProvider: this });
    this.held = [
      this.tree,
      inbox.onChange(() => this.update()),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        const opened = editor && this.openedOf(editor.document.uri);
        if (opened) opened.shownAt = Date.now();
      }),
    ];
  }

  dispose(): void {
    for (const each of [...this.held, this.files, this.rows]) each.dispose();
  }

  /** The writes that wait. */
  get pending(): ApprovalView[] {
    return this.inbox.approvals.filter(({ reviewable }) => reviewable);
  }

  /** Opens the diff of a write that waits. */
  async open(approval: ApprovalView): Promise<void> {
    try {
      const proposal = await this.daemon.call<ProposalView>("GET", `/api/approvals/${approval.id}/proposal`);
      if (proposal.after === null) return void vscode.window.showInformationMessage(`This call deletes ${proposal.path}. Decide in the inbox.`);
      const before = this.opened.get(approval.id);
      const after = before?.approval.digest === approval.digest ? before.after : proposal.after; // as saved, if its diff was closed
      this.opened.set(approval.id, { approval, proposal, after, shownAt: Date.now() });
      const name = proposal.path.split("/").at(-1) ?? "file";
      if (proposal.changed) void vscode.window.showWarningMessage(proposal.changed);
      await vscode.commands.executeCommand("vscode.diff", uriOf(approval.id, "before", proposal.path), uriOf(approval.id, "after", proposal.path), `${name} ← ${approval.caller.client}`, { preview: false });
    } catch (error) {
      showProblem(error);
    }
  }

  // The buttons of the diff editor act on the diff that is shown. The editor gives them its URI; whatever else runs their
  // commands (the palette, a key, a tool of the editor's chat) does not, and has to be confirmed by the person.

  async allow(shown?: unknown): Promise<void> {
    const opened = this.active();
    if (!opened) return;
    if (this.textOf(opened) !== opened.proposal.after) return this.allowEdited(shown);
    if (await this.confirm(opened.approval, opened.approval.digest, shown)) await this.finish(opened, this.answers.allow(opened.approval));
  }

  async allowEdited(shown?: unknown): Promise<void> {
    const opened = this.active();
    if (!opened) return;
    const content = this.textOf(opened);
    try {
      const preview = await this.answers.preview(opened.approval, content);
      if (await this.confirm({ ...opened.approval, risk: preview.risk, reasons: preview.reasons }, preview.digest, shown)) {
        await this.finish(opened, this.answers.allowContent(opened.approval, preview, content));
      }
    } catch (error) {
      showProblem(error);
    }
  }

  async reject(): Promise<void> {
    const opened = this.active();
    if (!opened) return;
    const reason = await vscode.window.showInputBox({ title: "Reject this change", prompt: "The agent reads this", placeHolder: "Reason (optional)" });
    if (reason !== undefined) await this.finish(opened, this.answers.deny(opened.approval, reason));
  }

  // Tree

  getTreeItem(approval: ApprovalView): vscode.TreeItem {
    const preview = approval.preview?.kind === "diff" ? approval.preview : null;
    const path = preview?.path ?? approval.title;
    const item = new vscode.TreeItem(path.split("/").at(-1) ?? path);
    item.resourceUri = vscode.Uri.file(path);
    item.description = preview ? `+${preview.added} −${preview.removed}  ${approval.risk}` : approval.risk;
    item.tooltip = `${approval.caller.client}: ${approval.title}\n${riskText(approval)}`;
    item.iconPath = new vscode.ThemeIcon("diff");
    item.command = { command: "handrail.showProposal", title: "Show the diff", arguments: [approval.id] };
    return item;
  }

  getChildren(): ApprovalView[] {
    return this.pending;
  }

  // File system

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const size = Buffer.byteLength(this.contentOf(uri));
    const { side } = partsOf(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: Date.now(), size, ...(side === "before" ? { permissions: vscode.FilePermission.Readonly } : {}) };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return Buffer.from(this.contentOf(uri), "utf8");
  }

  writeFile(uri: vscode.Uri, content: Uint8Array): void {
    const opened = this.openedOf(uri);
    if (!opened || partsOf(uri).side === "before") throw vscode.FileSystemError.NoPermissions(uri);
    opened.after = Buffer.from(content).toString("utf8");
    this.files.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  private contentOf(uri: vscode.Uri): string {
    const opened = this.openedOf(uri);
    if (!opened) throw vscode.FileSystemError.FileNotFound(uri);
    return partsOf(uri).side === "before" ? (opened.proposal.before ?? "") : opened.after;
  }

  private openedOf(uri: vscode.Uri): Opened | undefined {
    return uri.scheme === SCHEME ? this.opened.get(partsOf(uri).id) : undefined;
  }

  /** The proposal whose diff is shown, once its guard lets the person answer. */
  private active(): Opened | undefined {
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const opened = tab instanceof vscode.TabInputTextDiff ? this.openedOf(tab.modified) : undefined;
    return opened && Date.now() - opened.shownAt >= GUARD_MS ? opened : undefined;
  }

  /** The right side as the person sees it, saved or not. */
  private textOf({ approval, proposal, after }: Opened): string {
    const uri = uriOf(approval.id, "after", proposal.path).toString();
    return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri)?.getText() ?? after;
  }

  /** Asks in a modal message, unless a button was pressed and the risk is not high. */
  private async confirm(approval: ApprovalView, digest: string, shown: unknown): Promise<boolean> {
    const isButton = shown instanceof vscode.Uri && this.openedOf(shown)?.approval.id === approval.id;
    if (isButton && approval.risk !== "high") return true;
    const question = approval.risk === "high" ? "Allow this high-risk change?" : "Allow this change?";
    const detail = `${riskText(approval)}\n\n${approval.title}\n\nDigest ${digest.slice(0, 16)}`;
    return (await vscode.window.showWarningMessage(question, { modal: true, detail }, "Allow once")) === "Allow once";
  }

  private async finish(opened: Opened, answer: Promise<boolean>): Promise<void> {
    if (await answer) await this.close(opened);
  }

  /** Closes the diff of an answered question. What was typed there was either sent, or is not wanted. */
  private async close({ approval, proposal }: Opened): Promise<void> {
    const uri = uriOf(approval.id, "after", proposal.path);
    await vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString())?.save();
    const tabs = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs);
    await vscode.window.tabGroups.close(tabs.filter(({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === uri.toString()));
    this.opened.delete(approval.id);
  }

  /** The badge on the activity bar counts all questions. It belongs to the tree: a webview view has none before it is first shown. */
  private drawBadge(): void {
    const count = this.inbox.approvals.length;
    this.tree.badge = count ? { value: count, tooltip: count === 1 ? "1 call needs you" : `${count} calls need you` } : undefined;
  }

  /** Closes the diffs of questions that were answered elsewhere, unless the person has edited them. */
  private update(): void {
    this.rows.fire();
    this.drawBadge();
    const open = new Set(this.inbox.approvals.map(({ id }) => id));
    for (const opened of [...this.opened.values()]) {
      if (!open.has(opened.approval.id) && this.daemon.standing.kind === "live" && this.textOf(opened) === opened.proposal.after) void this.close(opened);
    }
  }
}

/** The path is that of the file, for the editor shows it; which proposal it is stands in the authority. */
function uriOf(approval: string, side: Side, path: string): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, authority: `${side}.${approval}`, path });
}

function partsOf(uri: vscode.Uri): { id: string; side: Side } {
  const [side, id = ""] = uri.authority.split(".");
  return { id, side: side === "before" ? "before" : "after" };
}
