/**
 * Terminal output as plain lines; pure.
 *
 * Applies carriage return, backspace, erase and horizontal moves within one line, and drops colours. A full-screen
 * program needs a real terminal.
 */
import { visibleText } from "./visibleText.ts";

/** Operating system, device, privacy and application strings; CSI; two-byte escapes; in this order. */
const SEQUENCE =
  /\x1b(?:[\]PX^_][\s\S]*?(?:\x07|\x1b\\)|\[([0-?]*)[ -/]*([@-~])|[ -/]+[0-~]|[0-Z\\-~])/y;
const COLOUR = /\x1b\[[\d;:]*m/g;
const SPECIAL = /[\x00-\x08\x0b-\x1f\x7f]/;

/** Renders many lines; text without control characters takes a fast path. */
export function renderLines(text: string): string {
  const lines = text.replaceAll("\r\n", "\n").replace(COLOUR, "");
  if (!SPECIAL.test(lines)) return visibleText(lines);
  return lines.split("\n").map(renderLine).join("\n");
}

/** Renders one line without its newline. */
export function renderLine(raw: string): string {
  const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
  return visibleText(SPECIAL.test(line) ? printed(line) : line);
}

function printed(raw: string): string {
  const cells: string[] = [];
  let column = 0;
  for (let at = 0; at < raw.length; ) {
    const character = String.fromCodePoint(raw.codePointAt(at) ?? 0);
    if (character === "\x1b") {
      SEQUENCE.lastIndex = at;
      const match = SEQUENCE.exec(raw);
      if (!match) break; // incomplete sequence: the rest has not arrived yet
      column = moved(cells, column, match[2], match[1]);
      at += match[0].length;
      continue;
    }
    at += character.length;
    if (character === "\r") column = 0;
    else if (character === "\b") column = Math.max(0, column - 1);
    else if (character === "\t" || !SPECIAL.test(character)) cells[column++] = character;
  }
  return Array.from(cells, (cell) => cell ?? " ").join("");
}

/** Limit for column moves: a hostile `CSI 999999999 C` must not build a giant line. */
const FAR = 1000;

function moved(cells: string[], column: number, final: string | undefined, parameters: string | undefined): number {
  const count = Number.parseInt(parameters ?? "", 10);
  const steps = Number.isNaN(count) ? 1 : count;
  switch (final) {
    case "K":
      if (count === 2) cells.length = 0;
      else if (count === 1) cells.fill(" ", 0, column + 1);
      else cells.length = Math.min(cells.length, column);
      return column;
    case "P":
      cells.splice(column, steps);
      return column;
    case "C":
      return Math.min(column + steps, cells.length + FAR);
    case "D":
      return Math.max(0, column - steps);
    case "G":
      return Math.min(Math.max(0, steps - 1), cells.length + FAR);
    default:
      return column;
  }
}
