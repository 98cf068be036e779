/**
 * A terminal's output as it comes: frames with absolute offsets, from one offset on, over reconnects.
 *
 * Owns the frame's shape (eight bytes of offset, then bytes) and resuming without gap or repeat.
 * It does not know what the bytes mean (text/tail.ts).
 */
import type { Frame } from "../text/tail.ts";
import type { Api } from "./api.ts";

const RETRY_MS = 1000;
const ENDED = 1000;

/** Attaches until detached; the returned function detaches. */
export function attach(api: Api, terminal: string, took: (frame: Frame) => void): () => void {
  let end = 0;
  let socket: WebSocket | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let detached = false;

  function connect(): void {
    socket = api.socket(`/api/terminals/${encodeURIComponent(terminal)}/attach?after=${end}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const frame = unpacked(data);
      end = Math.max(end, frame.offset + frame.bytes.length);
      took(frame);
    };
    socket.onclose = ({ code }) => {
      if (!detached && code !== ENDED) retry = setTimeout(connect, RETRY_MS);
    };
  }

  connect();
  return () => {
    detached = true;
    clearTimeout(retry);
    socket?.close();
  };
}

export function unpacked(data: ArrayBuffer): Frame {
  return { offset: Number(new DataView(data).getBigUint64(0)), bytes: new Uint8Array(data, 8) };
}
