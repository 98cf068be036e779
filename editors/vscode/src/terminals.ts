/**
 * Terminals of Handrail in the editor's panel: a profile that opens a new one, and a window on one that runs already.
 *
 * The process belongs to Handrail's keeper: it outlives the daemon and this window. A reconnect goes on at the last byte.
 */
import * as vscode from "vscode";
import type WebSocket from "ws";

import type { AttachRefused, AttachState, TerminalView } from "../../../ui/src/api/types.ts";
import { showProblem } from "./answers.ts";
import type { Daemon } from "./daemon.ts";

export const PROFILE = "handrail.terminal";
/** The name of a plain shell that stands in for a terminal of Handrail. */
const PLAIN = "Not kept by Handrail";
/** The profile's title in package.json, by which settings name it. */
const TITLE = "Handrail terminal";
const DEFAULT = `defaultProfile.${process.platform === "darwin" ? "osx" : "linux"}`;
const ASKED = "askedAboutDefaultTerminal";
/** How long a new terminal waits for the daemon: an editor that restores its terminals asks before it is connected. */
const CONNECT_MS = 3000;
const RETRY_MS = 500;
/** The shell's mark after a command. The editor reads its exit code only from a mark of its own kind, as ours says more than that. */
const COMMAND_ENDED = "\x1b]133;D;";
const COMMAND_ENDED_HERE = "\x1b]633;D;";
/** Bytes of output that a window on a running terminal begins with. */
const TAIL = 1 << 20;
/** Close codes after which there is nothing to come: all output was sent, or there is no such terminal. */
const OVER = new Set([1000, 4404]);

export class Terminals implements vscode.TerminalProfileProvider {
  /** Whether this window was told that it gets plain shells. */
  private warned = false;

  constructor(private readonly daemon: Daemon) {}

  /** A terminal of Handrail; the plain shell if this window may not open one, so that nobody is left without a terminal. */
  async provideTerminalProfile(): Promise<vscode.TerminalProfile> {
    await this.daemon.connected(CONNECT_MS);
    if (this.daemon.approves) return new vscode.TerminalProfile({ name: "Handrail", pty: new AttachedTerminal(this.daemon, null), iconPath: new vscode.ThemeIcon("shield") });
    const { standing } = this.daemon;
    if (!this.warned) void vscode.window.showWarningMessage(`This is the plain shell. ${standing.kind === "connecting" ? "Handrail does not answer." : standing.why}`);
    this.warned = true;
    showWhenOpened(PLAIN);
    return new vscode.TerminalProfile({ name: PLAIN });
  }

  /** Asks once, when a terminal is opened in a paired window, whether new ones should be Handrail's. */
  offerDefault(state: vscode.Memento): vscode.Disposable {
    return vscode.window.onDidOpenTerminal(async () => {
      const settings = vscode.workspace.getConfiguration("terminal.integrated");
      if (!this.daemon.approves || state.get(ASKED) || settings.get(DEFAULT) === TITLE) return;
      await state.update(ASKED, true);
      const question = "Make the Handrail terminal the default profile? Its shells outlive the window, and an agent that you start there cannot decide for you.";
      if ((await vscode.window.showInformationMessage(question, "Make It the Default", "No")) === "Make It the Default") await this.makeDefault();
    });
  }

  /** Makes the profile the default in the user's settings. */
  async makeDefault(): Promise<void> {
    await vscode.workspace.getConfiguration("terminal.integrated").update(DEFAULT, TITLE, vscode.ConfigurationTarget.Global);
    void vscode.window.showInformationMessage("New terminals are opened by Handrail now. `Terminal: Select Default Profile` changes it.");
  }

  /** Shows a running terminal in the panel: the one that shows it already, else a new one. */
  reveal(terminal: Pick<TerminalView, "id" | "name">): void {
    const open = vscode.window.terminals.find(({ creationOptions, exitStatus }) => !exitStatus && "pty" in creationOptions && creationOptions.pty instanceof AttachedTerminal && creationOptions.pty.shows(terminal.id));
    if (open) return open.show();
    vscode.window.createTerminal({ name: terminal.name || terminal.id, pty: new AttachedTerminal(this.daemon, terminal.id), iconPath: new vscode.ThemeIcon("shield") }).show();
  }

  /** Lets the person choose one of the running terminals. */
  async pick(): Promise<void> {
    try {
      const running = (await this.daemon.call<TerminalView[]>("GET", "/api/terminals")).filter((terminal) => terminal.running);
      if (!running.length) return void vscode.window.showInformationMessage("No terminal of Handrail runs now.");
      const rows = running.map((terminal) => ({ label: terminal.name || terminal.argv.join(" "), description: `${terminal.id} ${terminal.cwd}`, terminal }));
      const choice = await vscode.window.showQuickPick(rows, { title: "Show a terminal" });
      if (choice) this.reveal(choice.terminal);
    } catch (error) {
      showProblem(error);
    }
  }
}

/** Brings the next terminal of this name to the front: the editor does so itself only if it has the terminal early enough. */
function showWhenOpened(name: string): void {
  const held = vscode.window.onDidOpenTerminal((terminal) => {
    if (terminal.creationOptions.name !== name) return;
    held.dispose();
    terminal.show();
  });
}

/** One that a person only looks at keeps its size: a program draws anew for another one. It gets the panel's once they type. */
class AttachedTerminal implements vscode.Pseudoterminal {
  private readonly writes = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.writes.event;
  private readonly ends = new vscode.EventEmitter<number | void>();
  readonly onDidClose = this.ends.event;
  private readonly sizes = new vscode.EventEmitter<vscode.TerminalDimensions | undefined>();
  readonly onDidOverrideDimensions = this.sizes.event;
  private readonly decoder = new TextDecoder("utf-8");
  private socket: WebSocket | null = null;
  private size: vscode.TerminalDimensions | undefined;
  private next: number | null = null;
  private closed = false;
  private exit: number | null = null;
  /** Whether the panel sets the size. */
  private holds: boolean;

  /** Without an id, a new terminal is made. */
  constructor(
    private readonly daemon: Daemon,
    private id: string | null,
  ) {
    this.holds = id === null;
  }

  shows(id: string): boolean {
    return this.id === id;
  }

  open(size: vscode.TerminalDimensions | undefined): void {
    this.size = size;
    void this.begin();
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
  }

  handleInput(data: string): void {
    if (this.socket?.readyState !== 1) return this.writes.fire("\x07");
    this.socket.send(Buffer.from(data, "utf8"));
    if (this.holds) return;
    this.holds = true;
    this.sizes.fire(undefined);
    this.resize();
  }

  setDimensions(size: vscode.TerminalDimensions): void {
    this.size = size;
    this.resize();
  }

  private async begin(): Promise<void> {
    try {
      this.id ??= await this.make();
      this.attach(this.id);
    } catch (error) {
      this.writes.fire(`${error instanceof Error ? error.message : String(error)}\r\n`);
      this.ends.fire(1);
    }
  }

  private async make(): Promise<string> {
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file");
    const { columns: cols = 120, rows = 40 } = this.size ?? {};
    const body = { name: "VS Code", cols, rows, ...(folder ? { cwd: folder.uri.fsPath } : {}) };
    return (await this.daemon.call<TerminalView>("POST", "/api/terminals", body)).id;
  }

  private attach(id: string): void {
    if (this.closed) return;
    let socket: WebSocket;
    try {
      socket = this.socket = this.daemon.socket(`/api/terminals/${id}/attach?${this.next === null ? `tail=${TAIL}` : `after=${this.next}`}`);
    } catch {
      return this.later(id); // the daemon is not there yet
    }
    socket.on("open", () => this.resize());
    socket.on("message", (data: Buffer, isBinary: boolean) => (isBinary ? this.take(data) : this.hear(JSON.parse(data.toString("utf8")) as AttachState | AttachRefused)));
    socket.on("error", () => undefined); // a close follows
    socket.on("close", (code) => (OVER.has(code) ? this.ends.fire(this.exit ?? undefined) : this.later(id)));
  }

  private later(id: string): void {
    setTimeout(() => this.attach(id), RETRY_MS);
  }

  private take(frame: Buffer): void {
    this.next = Number(frame.readBigUInt64BE(0)) + frame.length - 8;
    const text = this.decoder.decode(frame.subarray(8), { stream: true });
    this.writes.fire(text.replaceAll(COMMAND_ENDED, COMMAND_ENDED_HERE));
  }

  private hear(message: AttachState | AttachRefused): void {
    if ("refused" in message) return void (message.what === "input" && showProblem(new Error(message.refused)));
    this.exit = message.state.exit_code;
    if (this.next === null && message.begin !== null && message.begin !== undefined) this.next = message.begin;
    this.holds &&= message.sizes; // false once another person has typed since
    const [columns, rows] = message.state.size;
    if (this.holds) this.resize(message.state.size);
    else this.sizes.fire({ columns, rows });
  }

  private resize(now?: readonly [number, number]): void {
    const { columns, rows } = this.size ?? {};
    if (!this.holds || !columns || !rows || (now && now[0] === columns && now[1] === rows)) return;
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify({ size: [columns, rows] }));
  }
}
