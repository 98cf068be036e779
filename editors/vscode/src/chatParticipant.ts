/**
 * `@handrail` in the editor's chat: prompts a thread of a hosted agent and streams its answer.
 *
 * A chat is one thread, which also stands in the sidebar. Questions of the agent's calls are answered there, in notifications and
 * in the diff editor, not in the chat.
 */
import * as vscode from "vscode";

import type { Message, Part, ThreadFlow, ThreadView } from "../../../ui/src/api/types.ts";
import { applyFlow, type Messages } from "../../../ui/src/features/threads/messages.ts";
import { fence, mention } from "./attachments.ts";
import type { Daemon } from "./daemon.ts";

const ID = "handrail.chat";
const SHOW = "handrail.showThread";

interface Prompted {
  readonly message: string;
  readonly operation: string | null;
}

/** Registers the participant, where the editor has chat. */
export function registerParticipant(daemon: Daemon, icon: vscode.IconPath): vscode.Disposable[] {
  if (typeof vscode.chat?.createChatParticipant !== "function") return [];
  const participant = vscode.chat.createChatParticipant(ID, (request, context, response, token) => answer(daemon, request, context, response, token));
  participant.iconPath = icon;
  return [participant];
}

async function answer(daemon: Daemon, request: vscode.ChatRequest, context: vscode.ChatContext, response: vscode.ChatResponseStream, token: vscode.CancellationToken): Promise<vscode.ChatResult> {
  let thread = threadOf(context);
  try {
    if (!thread) {
      const opened = await daemon.call<ThreadView>("POST", "/api/threads", { workspace: workspace(), title: "" });
      thread = opened.id;
      response.progress(`New thread with ${opened.agent}`);
    }
    const prompted = await daemon.call<Prompted>("POST", `/api/threads/${thread}/prompt`, { ...promptOf(request), queue: true });
    await stream(daemon, thread, prompted, response, token);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (!thread) return { errorDetails: { message } };
    response.button({ command: SHOW, title: "Open the Thread", arguments: [thread] });
    return { errorDetails: { message }, metadata: { thread } };
  }
  response.button({ command: SHOW, title: "Open the Thread", arguments: [thread] });
  return { metadata: { thread } };
}

/** The thread of this chat; null in its first turn. */
function threadOf(context: vscode.ChatContext): string | null {
  const threads = context.history.map((turn) => (turn instanceof vscode.ChatResponseTurn && turn.participant === ID ? (turn.result.metadata?.thread as unknown) : undefined));
  return (threads.findLast((one) => typeof one === "string") as string | undefined) ?? null;
}

/** The prompt: its text, the files that the person attached, and attached selections as text. */
function promptOf(request: vscode.ChatRequest): { text: string; files: string[] } {
  const values = request.references.map(({ value }) => value);
  const files = values.filter((value) => value instanceof vscode.Uri && value.scheme === "file").map((value) => (value as vscode.Uri).fsPath);
  const passages = values.filter((value) => value instanceof vscode.Location).map(passageOf);
  return { text: [request.prompt, ...passages].join("\n\n"), files };
}

function passageOf({ uri, range }: vscode.Location): string {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  const head = `${mention(uri)} lines ${range.start.line + 1} to ${range.end.line + 1}`;
  return document ? `${head}:\n${fence(document.getText(range), document.languageId)}` : head;
}

/** Streams what the agent says to a prompt, to its end. Stopping the chat cancels the operation. */
function stream(daemon: Daemon, thread: string, prompted: Prompted, response: vscode.ChatResponseStream, token: vscode.CancellationToken): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = daemon.socket(`/api/threads/${thread}/live`);
    const shown = new ShownAnswer(response, prompted);
    let messages: Messages = [];
    const held = token.onCancellationRequested(() => {
      if (shown.operation) void daemon.call("POST", `/api/operations/${shown.operation}/cancel`).catch(() => undefined);
      end();
    });
    const end = (problem?: Error): void => {
      held.dispose();
      socket.removeAllListeners().on("error", () => undefined);
      socket.close();
      if (problem) reject(problem);
      else resolve();
    };
    socket.on("message", (data: Buffer) => {
      const flow = JSON.parse(data.toString("utf8")) as ThreadFlow;
      const next = applyFlow(messages, flow);
      if (!next) return end(new Error("A part of the answer was missed. The thread has it."));
      messages = next;
      if (shown.add(messages)) end();
    });
    socket.on("error", (error) => end(error));
    socket.on("close", () => end(new Error("The connection to Handrail was lost. The agent goes on; the thread has its answer.")));
  });
}

/** The answer in the chat: adds what is new in the messages of one prompt. */
class ShownAnswer {
  operation: string | null;
  private readonly written = new Map<string, string>();
  private readonly named = new Set<string>();

  constructor(
    private readonly response: vscode.ChatResponseStream,
    private readonly prompted: Prompted,
  ) {
    this.operation = prompted.operation;
  }

  /** Shows what is new; true at the end of the answer. */
  add(messages: Messages): boolean {
    this.operation ??= messages.find(({ id }) => id === this.prompted.message)?.operation ?? null;
    if (!this.operation) return false;
    const said = messages.filter(({ operation, role }) => operation === this.operation && role === "assistant");
    for (const message of said) for (const part of message.parts) this.addPart(message, part);
    const last = said.at(-1);
    return last !== undefined && last.stop !== null && last.stop !== "steered";
  }

  private addPart(message: Message, part: Part): void {
    const key = `${message.id} ${part.n}`;
    if (part.kind === "text" || part.kind === "error") {
      const before = this.written.get(key) ?? "";
      if (part.text === before) return;
      const isNew = before === "" && this.written.size > 0;
      this.response.markdown((isNew ? "\n\n" : "") + (part.text.startsWith(before) ? part.text.slice(before.length) : `\n\n${part.text}`));
      this.written.set(key, part.text);
    } else if (part.kind === "call" && !this.named.has(key)) {
      this.named.add(key);
      this.response.progress(String((part.data as { title?: unknown }).title ?? "Uses a tool"));
    }
  }
}

function workspace(): string | null {
  return vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath ?? null;
}
