/**
 * Handrail's MCP server for the editor's own agent, over HTTP with a call credential of this window.
 *
 * Never over stdio: the editor would launch a door itself, and its extension host would count as an agent.
 */
import * as vscode from "vscode";

import type { Daemon } from "./daemon.ts";

const PROVIDER = "handrail.mcp";

/** The part of the editor's API that came with 1.101: newer than the oldest editor that this extension runs in. */
interface HttpServer {
  uri: vscode.Uri;
  headers: Record<string, string>;
}
interface McpApi {
  readonly McpHttpServerDefinition?: new (label: string, uri: vscode.Uri) => HttpServer;
  readonly lm: {
    registerMcpServerDefinitionProvider?(id: string, provider: McpServer): vscode.Disposable;
  };
}
const api = vscode as unknown as McpApi;

export interface Credential {
  readonly id: string;
  readonly bearer: string;
  readonly url: string;
}

export class McpServer implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeMcpServerDefinitions = this.changes.event;
  private readonly starts = new vscode.EventEmitter<void>();
  /** Fires when the editor starts the server. */
  readonly onDidStart = this.starts.event;
  private credential: Promise<Credential> | null = null;
  private known: string | null = null;
  private readonly held: vscode.Disposable;

  constructor(private readonly daemon: Daemon) {
    this.held = daemon.onChange(() => {
      if (daemon.url === this.known) return;
      this.known = daemon.url;
      this.changes.fire();
    });
  }

  /** Registers the server, where the editor knows MCP. In 1.100 the function exists, and throws: it is not public yet. */
  register(): vscode.Disposable[] {
    try {
      return api.lm.registerMcpServerDefinitionProvider ? [api.lm.registerMcpServerDefinitionProvider(PROVIDER, this)] : [];
    } catch {
      return [];
    }
  }

  /** Nothing without a folder: a credential is for one workspace. */
  provideMcpServerDefinitions(): HttpServer[] {
    const { url } = this.daemon;
    return url && workspace() && api.McpHttpServerDefinition ? [new api.McpHttpServerDefinition("Handrail", vscode.Uri.parse(`${url}/mcp`))] : [];
  }

  /** Called when the editor starts the server: only then is a credential made. */
  async resolveMcpServerDefinition(server: HttpServer): Promise<HttpServer> {
    const { url, bearer } = await this.getCredential();
    server.uri = vscode.Uri.parse(url);
    server.headers = { ...server.headers, Authorization: `Bearer ${bearer}` };
    this.starts.fire();
    return server;
  }

  /** The call credential of this window, which is made when it is first needed. It approves nothing. */
  async getCredential(): Promise<Credential> {
    if (!workspace()) throw new Error("Open a folder first: Handrail's tools work in a folder.");
    this.credential ??= this.daemon.call<Credential>("POST", "/api/credentials", { name: "VS Code", workspace: workspace() });
    try {
      return await this.credential;
    } catch (error) {
      this.credential = null;
      throw error;
    }
  }

  dispose(): void {
    this.held.dispose();
    this.changes.dispose();
    this.starts.dispose();
    void this.credential?.then(({ id }) => this.daemon.call("DELETE", `/api/credentials/${id}`)).catch(() => undefined);
  }
}

function workspace(): string | null {
  return vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath ?? null;
}
