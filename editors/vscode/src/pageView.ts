/**
 * The page in webviews: a view in the sidebar, and a tab in the editor area.
 *
 * Forwards the page's requests and sockets to the daemon. A request can go only to `/api/`, and the page never sees the
 * bearer.
 */
import { randomBytes } from "node:crypto";

import * as vscode from "vscode";
import type WebSocket from "ws";

import type { ToExtension, ToPage } from "../../../ui/src/editor/messages.ts";
import type { Daemon } from "./daemon.ts";

export const VIEW = "handrail.page";
const TAB = "handrail.tab";
/** Bytes of a request that the page may make: bounds memory if the page is at fault. */
const BODY_MAX = 32 << 20;

export type Reveal = (what: "diff" | "terminal", id: string) => void;

export class PageViews implements vscode.WebviewViewProvider, vscode.Disposable {
  private readonly pages = new Set<Page>();
  private view: vscode.WebviewView | null = null;
  private tab: vscode.WebviewPanel | null = null;
  /** The path to show in the sidebar, if its view does not exist yet. */
  private wanted: string | null = null;
  private attached: string[] = [];
  reveal: Reveal = () => undefined;

  constructor(
    private readonly daemon: Daemon,
    private readonly root: vscode.Uri,
  ) {}

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const page = this.add(view.webview, (name) => (view.title = name));
    if (this.wanted) page.show(this.wanted);
    this.wanted = null;
    for (const text of this.attached.splice(0)) page.attach(text);
    view.onDidDispose(() => {
      this.view = null;
      this.remove(page);
    });
  }

  /** The page in a tab of the editor area; at most one. */
  openTab(path?: string): void {
    if (this.tab) this.tab.reveal();
    else {
      const tab = vscode.window.createWebviewPanel(TAB, "Handrail", vscode.ViewColumn.Active, { retainContextWhenHidden: true });
      tab.iconPath = iconIn(this.root);
      const page = this.add(tab.webview);
      tab.onDidDispose(() => {
        this.tab = null;
        this.remove(page);
      });
      this.tab = tab;
    }
    if (path) this.pageOf(this.tab?.webview)?.show(path);
  }

  /** Shows a path of the page in the sidebar. */
  async openSidebar(path?: string): Promise<void> {
    const page = this.pageOf(this.view?.webview);
    if (path && page) page.show(path);
    else this.wanted = path ?? null;
    await vscode.commands.executeCommand(`${VIEW}.focus`);
  }

  /** Adds a text to the message that is being written in the sidebar. */
  async attach(text: string): Promise<void> {
    const page = this.pageOf(this.view?.webview);
    if (page) page.attach(text);
    else this.attached.push(text);
    await vscode.commands.executeCommand(`${VIEW}.focus`);
  }

  /** Whether the person can see the page. */
  get visible(): boolean {
    return this.view?.visible === true || this.tab?.visible === true;
  }

  dispose(): void {
    this.tab?.dispose();
    for (const page of [...this.pages]) this.remove(page);
  }

  private add(webview: vscode.Webview, named: (view: string) => void = () => undefined): Page {
    const page = new Page(webview, this.daemon, (what, id) => this.reveal(what, id), named);
    this.pages.add(page);
    webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.root, "page")] };
    webview.html = buildHtml(webview, this.root);
    return page;
  }

  private remove(page: Page): void {
    this.pages.delete(page);
    page.dispose();
  }

  private pageOf(webview: vscode.Webview | undefined): Page | undefined {
    return [...this.pages].find((page) => page.webview === webview);
  }
}

/** One page: its messages, its open sockets. */
class Page implements vscode.Disposable {
  private readonly sockets = new Map<number, WebSocket>();
  private readonly held: vscode.Disposable[];
  private ready = false;
  private wanted: string | null = null;
  private attached: string[] = [];

  constructor(
    readonly webview: vscode.Webview,
    private readonly daemon: Daemon,
    private readonly reveal: Reveal,
    private readonly named: (view: string) => void,
  ) {
    this.held = [
      webview.onDidReceiveMessage((message: ToExtension) => this.hear(message)),
      daemon.onChange((standing) => {
        this.closeSockets();
        this.post({ type: "standing", standing });
      }),
    ];
  }

  show(path: string): void {
    if (this.ready) this.post({ type: "show", path });
    else this.wanted = path;
  }

  attach(text: string): void {
    if (this.ready) this.post({ type: "attach", text });
    else this.attached.push(text);
  }

  dispose(): void {
    this.closeSockets();
    for (const each of this.held) each.dispose();
  }

  private post(message: ToPage): void {
    void this.webview.postMessage(message);
  }

  private hear(message: ToExtension): void {
    switch (message.type) {
      case "ready":
        this.closeSockets(); // of the page before, if the webview was reloaded
        this.ready = true;
        this.post({ type: "standing", standing: this.daemon.standing });
        if (this.wanted) this.show(this.wanted);
        this.wanted = null;
        for (const text of this.attached.splice(0)) this.attach(text);
        break;
      case "start":
        void this.daemon.start();
        break;
      case "request":
        void this.request(message);
        break;
      case "open":
        this.open(message.id, message.path);
        break;
      case "send":
        this.sockets.get(message.id)?.send(message.data);
        break;
      case "close":
        this.sockets.get(message.id)?.close();
        break;
      case "reveal":
        this.reveal(message.what, message.id);
        break;
      case "view":
        this.named(message.name);
    }
  }

  private async request({ id, method, path, body, timeout }: Extract<ToExtension, { type: "request" }>): Promise<void> {
    try {
      if (!isOfApi(path) || (body?.length ?? 0) > BODY_MAX) throw new Error("The page may not ask for this.");
      const reply = await this.daemon.request(method, path, body, timeout);
      this.post({ type: "response", id, status: reply.status, contentType: reply.contentType, body: new Uint8Array(reply.body) });
    } catch {
      this.post({ type: "response", id, status: 0, contentType: "", body: new Uint8Array() });
    }
  }

  private open(id: number, path: string): void {
    let socket: WebSocket;
    try {
      if (!isOfApi(path)) throw new Error("The page may not ask for this.");
      socket = this.daemon.socket(path);
    } catch {
      return this.post({ type: "closed", id, code: 1006 });
    }
    this.sockets.set(id, socket);
    socket.on("open", () => this.post({ type: "opened", id }));
    socket.on("message", (data: Buffer, isBinary: boolean) => this.post({ type: "message", id, data: isBinary ? new Uint8Array(data) : data.toString("utf8") }));
    socket.on("error", () => undefined); // a close follows
    socket.on("close", (code) => {
      this.sockets.delete(id);
      this.post({ type: "closed", id, code });
    });
  }

  private closeSockets(): void {
    for (const socket of this.sockets.values()) socket.close();
  }
}

function isOfApi(path: string): boolean {
  return path.startsWith("/api/") && new URL(path, "http://daemon").pathname.startsWith("/api/");
}

/** The icon where the editor does not colour it itself. */
export function iconIn(root: vscode.Uri): { light: vscode.Uri; dark: vscode.Uri } {
  const file = (name: string): vscode.Uri => vscode.Uri.joinPath(root, "media", name);
  return { light: file("handrail.svg"), dark: file("handrail-dark.svg") };
}

/** The page loads only its own files, and connects to nothing. */
function buildHtml(webview: vscode.Webview, root: vscode.Uri): string {
  const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(root, "page", name)).toString();
  const nonce = randomBytes(16).toString("base64");
  const policy = [
    "default-src 'none'",
    `script-src ${webview.cspSource} 'nonce-${nonce}'`,
    `style-src ${webview.cspSource} 'unsafe-inline'`,
    `img-src ${webview.cspSource} data: blob:`,
    `font-src ${webview.cspSource}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types svelte-trusted-html dompurify",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <style>html { background: var(--vscode-sideBar-background, var(--vscode-editor-background)); }</style>
    <link rel="stylesheet" href="${file("page.css")}" />
    <title>Handrail</title>
  </head>
  <body>
    <div id="app"></div>
    <script type="module" nonce="${nonce}" src="${file("page.js")}"></script>
  </body>
</html>`;
}
