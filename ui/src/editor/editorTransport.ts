/**
 * Requests and sockets as messages to the editor's extension.
 *
 * The webview may connect to nothing itself, and never has the bearer: the extension adds it.
 */
import type { LiveSocket, Transport } from "../api/transport.ts";
import type { ToExtension, ToPage } from "./messages.ts";

type Response_ = Extract<ToPage, { type: "response" }>;
/** Longest that the extension may take for a request. The page gives up earlier, by its own signal. */
const TIMEOUT_MS = 120_000;
/** Responses with these have no body, also no empty one. */
const NO_BODY = new Set([204, 205, 304]);

export class EditorTransport implements Transport {
  private readonly post: (message: ToExtension) => void;
  private readonly url: () => string;
  private readonly waiting = new Map<number, (response: Response_) => void>();
  private readonly sockets = new Map<number, EditorSocket>();
  private last = 0;

  constructor(post: (message: ToExtension) => void, url: () => string) {
    this.post = post;
    this.url = url;
  }

  /** Handles what the extension says to a request or a socket. */
  hear(message: ToPage): void {
    if (message.type === "response") {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    } else if (message.type === "opened" || message.type === "message" || message.type === "closed") {
      this.sockets.get(message.id)?.hear(message);
      if (message.type === "closed") this.sockets.delete(message.id);
    }
  }

  async fetch(request: Request, signal: AbortSignal): Promise<Response> {
    const id = ++this.last;
    const { pathname, search } = new URL(request.url);
    const body = request.method === "GET" || request.method === "HEAD" ? null : await request.text();
    const response = await new Promise<Response_>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("The daemon does not answer.")), { once: true });
      this.waiting.set(id, resolve);
      this.post({ type: "request", id, method: request.method, path: pathname + search, body: body || null, timeout: TIMEOUT_MS });
    }).finally(() => this.waiting.delete(id));
    if (!response.status) throw new Error("The daemon does not answer.");
    return new Response(NO_BODY.has(response.status) ? null : response.body, { status: response.status, headers: { "content-type": response.contentType } });
  }

  socket(path: string): LiveSocket {
    const id = ++this.last;
    const socket = new EditorSocket(id, this.post);
    this.sockets.set(id, socket);
    this.post({ type: "open", id, path });
    return socket;
  }

  origin(): string {
    return this.url();
  }
}

class EditorSocket implements LiveSocket {
  binaryType: BinaryType = "arraybuffer";
  readyState: number = WebSocket.CONNECTING;
  onopen: LiveSocket["onopen"] = null;
  onmessage: LiveSocket["onmessage"] = null;
  onclose: LiveSocket["onclose"] = null;
  private readonly id: number;
  private readonly post: (message: ToExtension) => void;

  constructor(id: number, post: (message: ToExtension) => void) {
    this.id = id;
    this.post = post;
  }

  send(data: string | ArrayBufferLike | Blob | ArrayBufferView): void {
    this.post({ type: "send", id: this.id, data: data as string | Uint8Array<ArrayBuffer> });
  }

  close(): void {
    this.readyState = WebSocket.CLOSING;
    this.post({ type: "close", id: this.id });
  }

  hear(message: Extract<ToPage, { type: "opened" | "message" | "closed" }>): void {
    const self = this as unknown as WebSocket;
    if (message.type === "opened") {
      this.readyState = WebSocket.OPEN;
      this.onopen?.call(self, new Event("open"));
    } else if (message.type === "message") {
      this.onmessage?.call(self, new MessageEvent("message", { data: typeof message.data === "string" ? message.data : bufferOf(message.data) }));
    } else {
      this.readyState = WebSocket.CLOSED;
      this.onclose?.call(self, new CloseEvent("close", { code: message.code }));
    }
  }
}

/** Exactly these bytes: an array may be a part of a larger buffer. */
function bufferOf(bytes: Uint8Array<ArrayBuffer>): ArrayBuffer {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer;
}
