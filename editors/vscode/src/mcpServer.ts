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

interface Credential {
  readonly id: string;
  readonly bearer: string;
  readonly url: string;
}

export class McpServer implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeMcpServerDefinitions = this.changes.event;
  private credential: Credential | null = null;
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
    this.credential ??= await this.daemon.call<Credential>("POST", "/api/credentials", { name: "VS Code", workspace: workspace() });
    server.uri = vscode.Uri.parse(this.credential.url);
    server.headers = { ...server.headers, Authorization: `Bearer ${this.credential.bearer}` };
    return server;
  }

  dispose(): void {
    this.held.dispose();
    this.changes.dispose();
    if (this.credential) void this.daemon.call("DELETE", `/api/credentials/${this.credential.id}`).catch(() => undefined);
  }
}

function workspace(): string | null {
  return vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath ?? null;
}
