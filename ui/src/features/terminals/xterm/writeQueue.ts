/**
 * A queue of output for xterm, with back-pressure.
 *
 * Writes one small batch at a time, the next one after a frame was rendered. The queue is bounded, and the producer
 * learns when it overflows.
 */
import { markStarts } from "../shellMarks.ts";

/** Chunk size: parsed synchronously, within a millisecond or two. */
const PIECE = 16 << 10;
/** Bytes per frame: several megabytes a second, with time left to render. */
const BATCH = 160 << 10;
/** A longer queue is dropped. */
export const MAX_QUEUED = 8 << 20;

type Write = (bytes: Uint8Array, parsed: () => void) => void;

interface Piece {
  readonly bytes: Uint8Array;
  /** Absolute offset of its first byte. */
  readonly at: number;
}

export class WriteQueue {
  /** The offset of the chunk being parsed. */
  at = 0;
  /** Queued bytes. */
  waiting = 0;
  private pieces: Piece[] = [];
  private next = 0;
  private readonly underWay: Piece[] = [];
  private resting = false;
  private readonly write: Write;
  private readonly afterDrawing: (go: () => void) => void;

  constructor(write: Write, afterDrawing: (go: () => void) => void) {
    this.write = write;
    this.afterDrawing = afterDrawing;
  }

  /** False if the queue is full: nothing was added. */
  take(bytes: Uint8Array, at: number): boolean {
    if (this.waiting + bytes.length > MAX_QUEUED) return false;
    for (const [from, to] of cuts(bytes)) this.pieces.push({ bytes: bytes.subarray(from, to), at: at + from });
    this.waiting += bytes.length;
    if (this.underWay.length === 0 && !this.resting) this.go();
    return true;
  }

  /** Drops the queue; the batch in progress is still parsed. */
  drop(): number {
    const dropped = this.waiting;
    this.pieces = [];
    this.next = 0;
    this.waiting = 0;
    return dropped;
  }

  private go(): void {
    for (let size = 0; size < BATCH; ) {
      const piece = this.pieces[this.next];
      if (!piece) break;
      this.next++;
      if (this.underWay.length === 0) this.at = piece.at;
      this.underWay.push(piece);
      this.waiting -= piece.bytes.length;
      size += piece.bytes.length;
      this.write(piece.bytes, () => this.parsed(piece));
    }
    if (this.next > 256 || this.next === this.pieces.length) {
      this.pieces = this.pieces.slice(this.next);
      this.next = 0;
    }
  }

  /** Called between chunks, so that `at` is correct while a mark is parsed. */
  private parsed(piece: Piece): void {
    this.underWay.shift();
    this.at = this.underWay[0]?.at ?? piece.at + piece.bytes.length;
    if (this.underWay.length === 0 && this.waiting > 0) this.rest();
  }

  private rest(): void {
    this.resting = true;
    this.afterDrawing(() => {
      this.resting = false;
      this.go();
    });
  }
}

/** Chunks that begin at marks. */
function cuts(bytes: Uint8Array): [number, number][] {
  const starts = [...markStarts(bytes), bytes.length];
  const found: [number, number][] = [];
  let from = 0;
  for (const start of starts)
    for (; from < start; ) {
      const to = Math.min(start, from + PIECE);
      found.push([from, to]);
      from = to;
    }
  return found;
}
