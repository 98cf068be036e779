/** Sanitises text pasted into a terminal, and decides when to confirm it; pure. */

/** Control characters but tab and line ends: no keyboard sends them in the middle of a text. */
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]/g;

export interface PasteText {
  readonly text: string;
  /** Removed control characters: they could end a bracketed paste, or press keys. */
  readonly removed: number;
  readonly lines: number;
}

export function preparePaste(text: string): PasteText {
  const clean = text.replace(CONTROL, "");
  return { text: clean, removed: text.length - clean.length, lines: clean.split(/\r\n|\r|\n/).length };
}

/** Without bracketed paste every newline runs the line before it. */
export function needsConfirmation({ lines }: PasteText, bracketed: boolean): boolean {
  return lines > 1 && !bracketed;
}
