/**
 * The terminal socket: output with absolute offsets and state changes in, keys and sizes out, over reconnects.
 *
 * Frames are eight bytes of offset and then output; text messages are state. A reconnect resumes at the last offset.
 * The bytes are not interpreted here (lib/outputTail.ts, terminals/xterm/).
 */
import type { OutputFrame } from "../lib/outputTail.ts";
import type { Api } from "./client.ts";
import type { LiveSocket } from "./transport.ts";
import type { AttachRefused, AttachState } from "./types.ts";

/** Start at an offset, or this many bytes before the end. */
export type StartOffset = { readonly after: number } | { readonly tail: number };

export interface AttachListener {
  frame(frame: OutputFrame): void;
  state?(message: AttachState): void;
  refused?(message: AttachRefused): void;
  /** The state of the connection; `ended` if there is no more output to come. */
  line?(line: ConnectionState): void;
}

export type ConnectionState = "up" | "down" | "ended";

export interface Attachment {
  /** False while disconnected: input is never queued. */
  type(keys: Uint8Array): boolean;
  resize(cols: number, rows: number): void;
  /** Reconnects from another offset. */
  restart(from: StartOffset): void;
  detach(): void;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** Close codes after which there is nothing to reconnect to: all output was sent, or there is no such terminal. */
const OVER = new Set([1000, 4404]);

/** Attaches until detached. */
export function attachTerminal(api: Pick<Api, "socket">, terminal: string, from: StartOffset, listener: AttachListener): Attachment {
  let start = from;
  let socket: LiveSocket;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let pause = FIRST_PAUSE_MS;

  function connect(): void {
    const query = "after" in start ? `after=${start.after}` : `tail=${start.tail}`;
    const mine = api.socket(`/api/terminals/${encodeURIComponent(terminal)}/attach?${query}`);
    socket = mine;
    mine.binaryType = "arraybuffer";
    mine.onopen = () => listener.line?.("up");
    mine.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (mine !== socket) return;
      pause = FIRST_PAUSE_MS;
      if (typeof data === "string") hear(JSON.parse(data) as AttachState | AttachRefused);
      else take(decodeFrame(data));
    };
    mine.onclose = ({ code }) => {
      if (mine !== socket) return;
      listener.line?.(OVER.has(code) ? "ended" : "down");
      if (!OVER.has(code)) later();
    };
  }

  function hear(message: AttachState | AttachRefused): void {
    if ("refused" in message) return listener.refused?.(message);
    if (message.begin !== null && message.begin !== undefined && "tail" in start) start = { after: message.begin };
    listener.state?.(message);
  }

  function take(frame: OutputFrame): void {
    start = { after: frame.offset + frame.bytes.length };
    listener.frame(frame);
  }

  function later(): void {
    retry = setTimeout(connect, pause);
    pause = Math.min(pause * 1.7, LONGEST_PAUSE_MS);
  }

  function leave(): void {
    clearTimeout(retry);
    const mine = socket;
    mine.onclose = mine.onmessage = mine.onopen = null;
    mine.close();
  }

  connect();
  return {
    type(keys) {
      if (socket.readyState !== WebSocket.OPEN) return false;
      socket.send(keys as Uint8Array<ArrayBuffer>);
      return true;
    },
    resize(cols, rows) {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ size: [cols, rows] }));
    },
    restart(elsewhere) {
      leave();
      start = elsewhere;
      later();
    },
    detach: leave,
  };
}

export function decodeFrame(data: ArrayBuffer): OutputFrame {
  return { offset: Number(new DataView(data).getBigUint64(0)), bytes: new Uint8Array(data, 8) };
}
