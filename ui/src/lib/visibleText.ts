/** Makes hidden characters visible: control, bidi, zero-width and similar characters are escaped and flagged; pure. */
import { ESCAPES, HIDDEN, HIDDEN_NAMES } from "../hidden_text.ts";

export interface Piece {
  readonly text: string;
  /** The name of the escaped character. */
  readonly flag?: string;
}

/** Fast path: nothing to escape. */
const ASCII = /^[\t\n -~]*$/;

/** The text as pieces, split at escaped characters. */
export function visiblePieces(text: string): Piece[] {
  if (ASCII.test(text)) return [{ text }];
  const pieces: Piece[] = [];
  let done = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > done) pieces.push({ text: text.slice(done, match.index) });
    pieces.push({ text: spelled(match[0]), flag: named(match[0]) });
    done = match.index + match[0].length;
  }
  if (done < text.length || pieces.length === 0) pieces.push({ text: text.slice(done) });
  return pieces;
}

/** The escaped text as one string, for places that cannot flag: titles, notifications, output. */
export function visibleText(text: string): string {
  return ASCII.test(text) ? text : text.replace(HIDDEN, spelled);
}

/** Typed text without the Enter at its end, which needs no flag. */
export function splitEnter(text: string): { readonly text: string; readonly enter: boolean } {
  const bare = text.replace(/(\r\n|\r|\n)$/, "");
  return { text: bare, enter: bare !== text };
}

/** One sentence about the hidden characters in a text, or null. */
export function hiddenTextWarning(text: string): string | null {
  const kinds = new Map<string, number>();
  for (const { flag } of visiblePieces(text)) if (flag) kinds.set(kindOf(flag), (kinds.get(kindOf(flag)) ?? 0) + 1);
  if (kinds.size === 0) return null;
  const parts = [...kinds].map(([kind, count]) => (count === 1 ? `1 ${kind}` : `${count} ${plural(kind)}`));
  return `Contains hidden characters, shown escaped: ${parts.join(", ")}.`;
}

function spelled(character: string): string {
  return ESCAPES[character] ?? escape(code(character));
}

function escape(point: number): string {
  return `\\u{${point.toString(16)}}`;
}

function named(character: string): string {
  const point = code(character);
  const name = HIDDEN_NAMES.find(([from, to]) => from <= point && point <= to)?.[2] ?? "invisible character";
  return `U+${point.toString(16).toUpperCase().padStart(4, "0")} ${name}`;
}

function kindOf(flag: string): string {
  return flag.slice(flag.indexOf(" ") + 1);
}

function plural(kind: string): string {
  return kind === "half a character" ? "halves of characters" : `${kind}s`;
}

function code(character: string): number {
  return character.codePointAt(0) ?? 0;
}
