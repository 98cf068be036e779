/**
 * The connection to the daemon: it says hello, reconnects, and makes requests with the bearer.
 *
 * The bearer is held here only: not in settings, storage, the environment, a webview or a URL.
 */
import { spawn } from "node:child_process";
import { request as httpRequest } from "node:http";

import * as vscode from "vscode";
import WebSocket from "ws";

import type { Standing } from "../../../ui/src/editor/messages.ts";
import { daemonEnvironment, daemonSockets } from "./daemonPaths.ts";
import { compareReleases, type Connection, HelloError, type Question, sayHello, type Terms } from "./hello.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;
const TIMEOUT_MS = 15_000;

/** A response of the daemon. */
export interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** The daemon refused a request; the message is its own. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class Daemon implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<Standing>();
  readonly onChange = this.changes.event;
  private readonly questions = new vscode.EventEmitter<Question>();
  /** Fires when the daemon asks about code. */
  readonly onQuestion = this.questions.event;
  private current: Standing = { kind: "connecting" };
  private terms: Terms | null = null;
  private epoch = 0;
  private pause = FIRST_PAUSE_MS;
  private retry: NodeJS.Timeout | undefined;
  private connection: Connection | null = null;
  private over = false;

  /** `version` is that of the extension. */
  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly version: string,
  ) {}

  get standing(): Standing {
    return this.current;
  }

  /** Whether a person may decide here now. */
  get approves(): boolean {
    return this.terms?.approves === true;
  }

  /** Why nothing can be asked of the daemon now; empty while this window is connected. */
  get problem(): string {
    if (this.current.kind === "live") return "";
    return this.current.kind === "away" ? this.current.why : "Looking for Handrail…";
  }

  get url(): string | null {
    return this.terms?.url ?? null;
  }

  /** Sends a message on the connection of the hello, if the daemon reads it. */
  send(message: unknown): void {
    if (this.terms?.asks) this.connection?.send(message);
  }

  /** Waits until the daemon has answered, or is known to be away; at most so long. */
  async connected(timeout: number): Promise<void> {
    if (this.current.kind !== "connecting") return;
    await new Promise<void>((resolve) => {
      const held = this.onChange(() => done());
      const timer = setTimeout(() => done(), timeout);
      const done = (): void => {
        held.dispose();
        clearTimeout(timer);
        resolve();
      };
    });
  }

  connect(): void {
    clearTimeout(this.retry);
    this.connection?.hangUp();
    if (this.over) return;
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file");
    this.connection = sayHello(daemonSockets(setting("home")), folder?.uri.fsPath ?? null, {
      terms: (terms) => this.accept(terms),
      asked: (question) => this.questions.fire(question),
      ended: (error) => this.lose(error),
    });
  }

  dispose(): void {
    this.over = true;
    clearTimeout(this.retry);
    this.connection?.hangUp();
    this.changes.dispose();
    this.questions.dispose();
  }

  /** Starts the daemon, and connects as soon as it listens. Until then the page shows a spinner instead of the button. */
  async start(): Promise<void> {
    if (this.current.kind === "live") return void vscode.window.showInformationMessage("Handrail is running.");
    clearTimeout(this.retry);
    this.connection?.hangUp();
    this.tell({ kind: "connecting" });
    const command = setting("command") || "handrail";
    this.log.info(`starting ${command} up`);
    const problem = await runToEnd(command, ["up", "--no-open"], daemonEnvironment(setting("home")));
    if (problem) void showFailure(problem);
    this.pause = FIRST_PAUSE_MS;
    this.connect();
  }

  /** Makes a request. Rejects if there is no response. */
  async request(method: string, path: string, body: string | null = null, timeout = TIMEOUT_MS): Promise<Reply> {
    const terms = this.terms;
    if (!terms) throw new Error("Handrail is not running.");
    const reply = await exchange(terms, method, path, body, timeout);
    if (reply.status === 401 && this.terms === terms) this.connect();
    return reply;
  }

  /** Makes a request and reads its JSON. Rejects with a Refusal if the daemon refuses. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const reply = await this.request(method, path, body === undefined ? null : JSON.stringify(body));
    const text = reply.body.toString("utf8");
    if (reply.status >= 400) throw new Refusal(reply.status, detailOf(text) ?? `Handrail refused this with status ${reply.status}.`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Opens a WebSocket at a path of the daemon. Throws without a daemon. */
  socket(path: string): WebSocket {
    const terms = this.terms;
    if (!terms) throw new Error("Handrail is not running.");
    const url = new URL(path, terms.url);
    url.protocol = "ws:";
    return new WebSocket(url, { headers: { Authorization: `Bearer ${terms.bearer}` }, perMessageDeflate: false, maxPayload: 1 << 28 });
  }

  private accept(terms: Terms): void {
    this.terms = terms;
    this.pause = FIRST_PAUSE_MS;
    this.epoch += 1;
    this.log.info(terms.approves ? "connected; this editor decides" : `connected; this editor watches: ${terms.why}`);
    const { url, approves, why, number } = terms;
    const update = compareReleases(terms.version, this.version);
    if (update) this.log.warn(update);
    this.tell({ kind: "live", epoch: this.epoch, url, approves, why, number, update });
  }

  private lose(error: HelloError): void {
    this.terms = null;
    if (this.over) return;
    this.log.info(error.message);
    this.tell({ kind: "away", why: error.message, canStart: error.canStart });
    this.retry = setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 1.7, LONGEST_PAUSE_MS);
  }

  private tell(standing: Standing): void {
    this.current = standing;
    this.changes.fire(standing);
  }
}

function setting(name: string): string {
  return vscode.workspace.getConfiguration("handrail").get<string>(name, "");
}

function exchange(terms: Terms, method: string, path: string, body: string | null, timeout: number): Promise<Reply> {
  const headers = { Authorization: `Bearer ${terms.bearer}`, ...(body === null ? {} : { "Content-Type": "application/json" }) };
  return new Promise((resolve, reject) => {
    const request = httpRequest(new URL(path, terms.url), { method, headers, timeout }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, contentType: response.headers["content-type"] ?? "", body: Buffer.concat(chunks) }));
    });
    request.on("timeout", () => request.destroy(new Error("Handrail does not answer.")));
    request.on("error", reject);
    request.end(body ?? undefined);
  });
}

function detailOf(text: string): string | null {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    return typeof detail === "string" ? detail : null;
  } catch {
    return null;
  }
}

/** With a button, as the editor shows only one line of an error without any. */
async function showFailure(problem: string): Promise<void> {
  const choice = await vscode.window.showErrorMessage(`Handrail could not be started: ${problem}`, "Open Settings");
  if (choice) await vscode.commands.executeCommand("workbench.action.openSettings", "handrail.command");
}

/** Runs a program to its end; the last line that it printed if it failed. */
function runToEnd(command: string, words: readonly string[], environment: Record<string, string>): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const child = spawn(command, words, { env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "pipe"], detached: true });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2000)));
    child.on("error", ({ code, message }: NodeJS.ErrnoException) => {
      resolve(code === "ENOENT" ? `the program \`${command}\` was not found. Set \`handrail.command\` to its path.` : `${message}. \`handrail.command\` names the program.`);
    });
    child.on("exit", (code) => resolve(code === 0 ? "" : said.trim().split("\n").at(-1) || `it ended with status ${code}.`));
  });
}
