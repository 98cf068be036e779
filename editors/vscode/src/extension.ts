/** The extension: connects to Handrail's daemon and puts its parts into the editor. */
import * as vscode from "vscode";

import type { ApprovalView } from "../../../ui/src/api/types.ts";
import { Answers } from "./answers.ts";
import { attachments } from "./attachments.ts";
import { Attention } from "./attention.ts";
import { registerParticipant } from "./chatParticipant.ts";
import { ChatTools } from "./chatTools.ts";
import { CodeQuestions } from "./codeQuestions.ts";
import { Daemon } from "./daemon.ts";
import { Inbox } from "./inbox.ts";
import { McpServer } from "./mcpServer.ts";
import { iconIn, PageViews, VIEW } from "./pageView.ts";
import { Palette } from "./palette.ts";
import { Proposals, SCHEME } from "./proposals.ts";
import { PROFILE, Terminals } from "./terminals.ts";
import { WrittenFiles } from "./writtenFiles.ts";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Handrail", { log: true });
  const daemon = new Daemon(log, (context.extension.packageJSON as { version: string }).version);
  const inbox = new Inbox(daemon, log);
  const pages = new PageViews(daemon, context.extensionUri);
  const answers = new Answers(daemon);
  const attention = new Attention(daemon, inbox, pages, answers);
  const proposals = new Proposals(daemon, inbox, answers);
  const written = new WrittenFiles(daemon, inbox, context.extensionUri);
  const terminals = new Terminals(daemon);
  const mcp = new McpServer(daemon);
  const questions = new CodeQuestions(daemon);
  const palette = new Palette(daemon, inbox, pages);

  /** A write is shown in the diff editor, everything else in the sidebar. */
  const show = (approval: ApprovalView): void => void (approval.reviewable ? proposals.open(approval) : pages.openSidebar(`/a/${approval.id}`));
  const find = (id: string): ApprovalView | undefined => inbox.approvals.find((approval) => approval.id === id || approval.call_id === id);
  attention.show = show;
  pages.reveal = (what, id) => {
    const approval = what === "diff" ? find(id) : undefined;
    if (approval) show(approval);
    else if (what === "terminal") terminals.reveal({ id, name: "" });
  };

  /** Commands of the palette and of buttons. Other extensions can run them: the two that approve ask the person, unless they get
   *  the URI that the editor gives to the buttons of a shown diff. */
  const commands: Record<string, (...words: never[]) => unknown> = {
    openInbox: () => pages.openSidebar("/"),
    openTab: () => pages.openTab(),
    start: () => daemon.start(),
    nextQuestion: () => {
      const [next] = inbox.approvals;
      if (next) show(next);
      else void vscode.window.showInformationMessage(daemon.problem || "Nothing waits for you.");
    },
    cancelCall: () => palette.end("cancel"),
    completeCall: () => palette.end("complete"),
    stopAll: () => palette.stopAll(),
    undoLast: () => written.undoLast(),
    undoCall: (call: string) => written.undo(call),
    openThread: () => palette.openThread(),
    showThread: (id: string) => pages.openSidebar(`/t/${id}`),
    connectAgent: () => palette.connectAgent(),
    showTerminal: () => terminals.pick(),
    makeTerminalDefault: () => terminals.makeDefault(),
    showProposal: (id: string) => {
      const approval = find(id);
      if (approval) return proposals.open(approval);
    },
    allowProposal: (shown: unknown) => proposals.allow(shown),
    allowEditedProposal: (shown: unknown) => proposals.allowEdited(shown),
    rejectProposal: () => proposals.reject(),
    ...attachments((text) => pages.attach(text)),
    nextHunk: () => vscode.commands.executeCommand("workbench.action.compareEditor.nextChange"),
  };

  context.subscriptions.push(
    log,
    daemon,
    inbox,
    pages,
    attention,
    proposals,
    written,
    mcp,
    questions,
    new ChatTools(mcp, context.extension.packageJSON),
    vscode.window.registerWebviewViewProvider(VIEW, pages, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.workspace.registerFileSystemProvider(SCHEME, proposals, { isCaseSensitive: true }),
    vscode.languages.registerCodeLensProvider({ scheme: "file" }, written),
    vscode.window.registerTerminalProfileProvider(PROFILE, terminals),
    terminals.offerDefault(context.globalState),
    ...mcp.register(),
    ...registerParticipant(daemon, iconIn(context.extensionUri)),
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`handrail.${name}`, run)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("handrail.home")) daemon.connect();
    }),
  );
  daemon.connect();
}
