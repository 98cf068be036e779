/**
 * Terminal output as lines, plain or with their colours; pure.
 *
 * Applies carriage return, backspace, erase and horizontal moves within one line. A full-screen program needs a real
 * terminal.
 */
import { nextStyle, type StyledText } from "./sgr.ts";
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

/** Renders lines with their styles, which go on from line to line; `style` is the one before the text. */
export function renderStyled(text: string, style = ""): { pieces: StyledText[]; style: string } {
  const lines = text.replaceAll("\r\n", "\n");
  if (!style && !SPECIAL.test(lines)) return { pieces: lines ? [{ text: visibleText(lines), style }] : [], style };
  const pieces: StyledText[] = [];
  let now = style;
  lines.split("\n").forEach((line, number) => {
    if (number) add(pieces, "\n", "");
    now = addLine(pieces, line.endsWith("\r") ? line.slice(0, -1) : line, now);
  });
  return { pieces, style: now };
}

/** Adds one line; returns the style at its end. */
function addLine(pieces: StyledText[], line: string, style: string): string {
  if (!SPECIAL.test(line.replace(COLOUR, ""))) return addColoured(pieces, line, style);
  const styles: string[] = [];
  let now = style;
  const cells = printedCells(line, {
    wrote: (column) => (styles[column] = now),
    styled: (parameters) => (now = nextStyle(now, parameters)),
    removed: (column, count) => styles.splice(column, count),
  });
  cells.forEach((cell, column) => add(pieces, visibleText(cell), styles[column] ?? ""));
  return now;
}

/** Adds a line that has no control characters but colours. */
function addColoured(pieces: StyledText[], line: string, style: string): string {
  let now = style;
  let at = 0;
  for (const match of line.matchAll(COLOUR)) {
    add(pieces, visibleText(line.slice(at, match.index)), now);
    now = nextStyle(now, match[0].slice(2, -1));
    at = match.index + match[0].length;
  }
  add(pieces, visibleText(line.slice(at)), now);
  return now;
}

function add(pieces: StyledText[], text: string, style: string): void {
  const last = pieces.at(-1);
  if (!text) return;
  if (last?.style === style) pieces[pieces.length - 1] = { text: last.text + text, style };
  else pieces.push({ text, style });
}

/** What happens to the cells of a line, for who keeps more about each. */
interface CellWatch {
  wrote(column: number): void;
  styled(parameters: string): void;
  removed(column: number, count: number): void;
}

function printed(raw: string): string {
  return printedCells(raw).join("");
}

function printedCells(raw: string, watch?: CellWatch): string[] {
  const cells: string[] = [];
  let column = 0;
  for (let at = 0; at < raw.length; ) {
    const character = String.fromCodePoint(raw.codePointAt(at) ?? 0);
    if (character === "\x1b") {
      SEQUENCE.lastIndex = at;
      const match = SEQUENCE.exec(raw);
      if (!match) break; // incomplete sequence: the rest has not arrived yet
      if (match[2] === "m") watch?.styled(match[1] ?? "");
      if (match[2] === "P") watch?.removed(column, Number.parseInt(match[1] || "1", 10));
      column = moved(cells, column, match[2], match[1]);
      at += match[0].length;
      continue;
    }
    at += character.length;
    if (character === "\r") column = 0;
    else if (character === "\b") column = Math.max(0, column - 1);
    else if (character === "\t" || !SPECIAL.test(character)) {
      watch?.wrote(column);
      cells[column++] = character;
    }
  }
  return Array.from(cells, (cell) => cell ?? " ");
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
