/**
 * Parses shell integration marks (OSC 133 and 633); pure.
 *
 * A mark counts only with the terminal's nonce, since any program can print one. Lines and decorations are in
 * terminals/xterm/gutter.ts.
 */
export type Mark =
  | { readonly kind: "prompt" }
  | { readonly kind: "typing" }
  | { readonly kind: "output" }
  | { readonly kind: "ended"; readonly exitCode: number | null }
  | { readonly kind: "line"; readonly line: string };

/** The mark, or null if it is malformed or lacks the nonce. */
export function parseMark(code: 133 | 633, data: string, nonce: string): Mark | null {
  if (!nonce) return null;
  const [letter, ...rest] = data.split(";");
  if (code === 633) return letter === "E" && rest.at(-1) === nonce ? { kind: "line", line: unescaped(rest[0] ?? "") } : null;
  if (!rest.includes(`nonce=${nonce}`)) return null;
  if (letter === "A") return { kind: "prompt" };
  if (letter === "B") return { kind: "typing" };
  if (letter === "C") return { kind: "output" };
  if (letter === "D") return { kind: "ended", exitCode: number(rest[0]) };
  return null;
}

/** Decodes `\x3b` (separator) and `\\` (backslash). */
function unescaped(text: string): string {
  return text.replace(/\\(?:\\|x([0-9a-f]{2}))/gi, (_, hex: string | undefined) => (hex ? String.fromCharCode(Number.parseInt(hex, 16)) : "\\"));
}

function number(text: string | undefined): number | null {
  return text && /^\d{1,3}$/.test(text) ? Number(text) : null;
}

const ESCAPE = 0x1b;
/** `]133;`, the bytes after the escape. */
const BEGINNING = [0x5d, 0x31, 0x33, 0x33, 0x3b];

/** Offsets at which marks begin: chunks are cut there, so that each mark's offset is known when it is parsed. */
export function markStarts(bytes: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = bytes.indexOf(ESCAPE); at >= 0; at = bytes.indexOf(ESCAPE, at + 1))
    if (BEGINNING.every((byte, step) => bytes[at + 1 + step] === byte)) starts.push(at);
  return starts;
}
