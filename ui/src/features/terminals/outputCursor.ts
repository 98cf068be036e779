/**
 * The offset up to which output was received, and the new bytes of a frame; pure.
 *
 * Guarantees no gap and no repeated byte: known bytes are cut off, missing ones are counted.
 */
import type { OutputFrame } from "../../lib/outputTail.ts";

export interface NewBytes {
  /** The new bytes; may be empty. */
  readonly bytes: Uint8Array;
  /** The offset of the first of them. */
  readonly at: number;
  /** How many bytes are missing before them. */
  readonly missing: number;
}

export class OutputCursor {
  /** The offset after the last byte taken; null before the first. */
  end: number | null = null;

  take({ offset, bytes }: OutputFrame): NewBytes {
    const known = this.end === null ? 0 : Math.max(0, this.end - offset);
    const missing = this.end === null ? 0 : Math.max(0, offset - this.end);
    const fresh = known ? bytes.subarray(Math.min(known, bytes.length)) : bytes;
    const at = offset + bytes.length - fresh.length;
    this.end = Math.max(this.end ?? 0, offset + bytes.length);
    return { bytes: fresh, at, missing };
  }
}
