/**
 * Handrail's tools for the editor's own agent, through `vscode.lm.registerTool`.
 *
 * Each use becomes an MCP request with the call credential of this window, so that the gate judges it like a call of any agent.
 * Once the editor starts Handrail's MCP server, which has the same tools, these are taken back.
 */
import { request } from "node:http";

import * as vscode from "vscode";

import type { Credential, McpServer } from "./mcpServer.ts";

const PREFIX = "handrail_";
const ENABLED = "handrailChatTools";
const VERSION = "2026-07-28";
/** Longer than any tool waits before it answers "running". */
const TIMEOUT_MS = 180_000;
const ANSWER_MAX = 32 << 20;

type Input = Record<string, unknown>;
interface Content {
  readonly type: string;
  readonly text?: string;
}
interface Answer {
  readonly result?: { readonly content?: readonly Content[] };
  readonly error?: { readonly message?: string };
}

export class ChatTools implements vscode.Disposable {
  private readonly registered: vscode.Disposable[] = [];
  private readonly held: vscode.Disposable;

  constructor(
    private readonly mcp: McpServer,
    manifest: { readonly contributes?: { readonly languageModelTools?: readonly { readonly name: string }[] } },
  ) {
    this.held = mcp.onDidStart(() => this.take(false));
    if (typeof vscode.lm?.registerTool !== "function") return;
    for (const { name } of manifest.contributes?.languageModelTools ?? []) this.registered.push(vscode.lm.registerTool<Input>(name, this.tool(name.slice(PREFIX.length))));
    this.take(true);
  }

  dispose(): void {
    this.held.dispose();
    this.take(false);
  }

  private take(enabled: boolean): void {
    void vscode.commands.executeCommand("setContext", ENABLED, enabled);
    if (!enabled) for (const one of this.registered.splice(0)) one.dispose();
  }

  private tool(name: string): vscode.LanguageModelTool<Input> {
    return {
      // The editor does not ask: Handrail does, by its rules, and shows what would be done.
      prepareInvocation: () => ({ invocationMessage: `${name} through Handrail, which may ask you` }),
      invoke: async ({ input }, token) => new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(await this.call(name, input, token))]),
    };
  }

  private async call(name: string, input: Input, token: vscode.CancellationToken): Promise<string> {
    const answer = await post(await this.mcp.getCredential(), name, input, token);
    if (answer.error) throw new Error(answer.error.message ?? "Handrail refused this call.");
    return (answer.result?.content ?? []).map(({ text }) => text ?? "").join("\n");
  }
}

/** Makes a tools/call request. It needs no session, and the call is cancelled when the request is. */
function post({ url, bearer }: Credential, name: string, input: Input, token: vscode.CancellationToken): Promise<Answer> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": { name: vscode.env.appName, version: vscode.version },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input, _meta: meta } });
  const headers = {
    Authorization: `Bearer ${bearer}`,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": name,
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers, timeout: TIMEOUT_MS }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > ANSWER_MAX) sent.destroy(new Error("Handrail's answer is too long."));
      });
      response.on("error", reject);
      response.on("end", () => {
        held.dispose();
        try {
          resolve(parseAnswer(text));
        } catch {
          reject(new Error(`Handrail refused this call with status ${response.statusCode}.`));
        }
      });
    });
    const held = token.onCancellationRequested(() => sent.destroy(new vscode.CancellationError()));
    sent.on("timeout", () => sent.destroy(new Error("Handrail does not answer.")));
    sent.on("error", (error) => {
      held.dispose();
      reject(error);
    });
    sent.end(body);
  });
}

/** Reads a response: JSON, or a stream of events with the answer as the last message. */
export function parseAnswer(text: string): Answer {
  if (text.trimStart().startsWith("{")) return JSON.parse(text) as Answer;
  const messages = text
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trim())
    .filter(Boolean)
    .map((data) => JSON.parse(data) as Answer);
  const answer = messages.find((message) => message.result ?? message.error);
  if (!answer) throw new Error("no answer");
  return answer;
}
