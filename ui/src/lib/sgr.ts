/**
 * Colours and styles of terminal output (SGR, `CSI … m`) as pieces of text; pure.
 *
 * A style is a short string, so that equal styles are equal strings: class names, then `fg=` and `bg=` with a CSS colour.
 */

/** Text of one style; the style is empty for plain text. */
export interface StyledText {
  readonly text: string;
  readonly style: string;
}

/** How a style is drawn. */
export interface Drawn {
  readonly classes: string;
  readonly fg: string | undefined;
  readonly bg: string | undefined;
}

interface Sgr {
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  hidden: boolean;
  fg: string;
  bg: string;
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
const PLAIN: Sgr = { bold: false, faint: false, italic: false, underline: false, strike: false, inverse: false, hidden: false, fg: "", bg: "" };
const FLAGS = ["bold", "faint", "italic", "underline", "strike", "inverse", "hidden"] as const;

/** The style after a sequence with these parameters (`1;31`), from the style before it. */
export function nextStyle(style: string, parameters: string): string {
  const now = parsed(style);
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number.parseInt(code, 10)));
  for (let at = 0; at < codes.length; at++) at += apply(now, codes, at);
  return formatted(now);
}

/** The classes and colours of a style. Inverse video swaps the colours. */
export function drawn(style: string): Drawn {
  const { fg, bg, inverse, ...rest } = parsed(style);
  const classes = FLAGS.filter((flag) => flag !== "inverse" && rest[flag as keyof typeof rest]).join(" ");
  if (!inverse) return { classes, fg: fg || undefined, bg: bg || undefined };
  return { classes, fg: bg || "var(--inset)", bg: fg || "var(--ink)" };
}

/** Applies the code at `at`; returns how many further codes belong to it. */
function apply(now: Sgr, codes: readonly number[], at: number): number {
  const code = codes[at] ?? 0;
  if (code === 0) Object.assign(now, PLAIN);
  else if (code === 38 || code === 48) return extended(now, code === 38 ? "fg" : "bg", codes, at);
  else if (code >= 30 && code <= 37) now.fg = named(code - 30);
  else if (code >= 40 && code <= 47) now.bg = named(code - 40);
  else if (code >= 90 && code <= 97) now.fg = named(code - 90 + 8);
  else if (code >= 100 && code <= 107) now.bg = named(code - 100 + 8);
  else if (code === 39) now.fg = "";
  else if (code === 49) now.bg = "";
  else flag(now, code);
  return 0;
}

function flag(now: Sgr, code: number): void {
  const on = { 1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 8: "hidden", 9: "strike" } as const;
  const off = { 23: "italic", 24: "underline", 27: "inverse", 28: "hidden", 29: "strike" } as const;
  if (code in on) now[on[code as keyof typeof on]] = true;
  else if (code in off) now[off[code as keyof typeof off]] = false;
  else if (code === 22) now.bold = now.faint = false;
}

function extended(now: Sgr, which: "fg" | "bg", codes: readonly number[], at: number): number {
  if (codes[at + 1] === 5) {
    now[which] = indexed(codes[at + 2] ?? 0);
    return 2;
  }
  if (codes[at + 1] !== 2) return 1;
  now[which] = rgb(codes[at + 2], codes[at + 3], codes[at + 4]);
  return 4;
}

function named(index: number): string {
  return `var(--ansi-${index >= 8 ? "bright-" : ""}${NAMES[index % 8] ?? "white"})`;
}

/** A colour of the 256: 16 names, a cube of 6 × 6 × 6, 24 greys. */
function indexed(index: number): string {
  if (index < 16) return named(index);
  if (index >= 232) return rgb(8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10);
  const level = (value: number): number => (value ? 55 + value * 40 : 0);
  const cube = index - 16;
  return rgb(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function rgb(...levels: (number | undefined)[]): string {
  return `rgb(${levels.map((level) => Math.min(255, Math.max(0, level || 0))).join(" ")})`;
}

function formatted(now: Sgr): string {
  const flags = FLAGS.filter((flag) => now[flag]);
  return [...flags, ...(now.fg ? [`fg=${now.fg}`] : []), ...(now.bg ? [`bg=${now.bg}`] : [])].join("|");
}

function parsed(style: string): Sgr {
  const now = { ...PLAIN };
  for (const part of style ? style.split("|") : []) {
    if (part.startsWith("fg=")) now.fg = part.slice(3);
    else if (part.startsWith("bg=")) now.bg = part.slice(3);
    else now[part as (typeof FLAGS)[number]] = true;
  }
  return now;
}
