/** Output that a page does not hold any more, read from the daemon in pages of whole lines. */
import type { Api } from "../../api/client.ts";
import { type OutputBlock, OutputTail } from "../../lib/outputTail.ts";

/** Bytes read at a time. Less than the daemon gives in one page. */
const PAGE = 192 << 10;
const NEWLINE = 10;

export interface EarlierOutput {
  readonly blocks: readonly OutputBlock[];
  /** The first byte that the daemon still has. */
  readonly first: number;
}

/** The lines that end at the offset `end`. */
export async function readEarlier(api: Pick<Api, "outputPage">, terminal: string, end: number): Promise<EarlierOutput> {
  const page = await api.outputPage(terminal, { mode: "raw", after: Math.max(0, end - PAGE) });
  const bytes = decoded(page.base64).subarray(0, Math.max(0, end - page.start));
  // A page that begins within a line leaves the rest of that line to the page before it.
  const cut = page.start > page.first ? bytes.indexOf(NEWLINE) + 1 : 0;
  const tail = new OutputTail();
  tail.take([{ offset: page.start + cut, bytes: bytes.subarray(cut) }]);
  return { blocks: tail.blocks, first: page.first };
}

function decoded(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
