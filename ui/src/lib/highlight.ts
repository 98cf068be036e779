/**
 * Syntax highlighting of a text by line, in time slices, so that the page stays responsive.
 *
 * The language is in languages.ts, the colours are in highlight.css.
 */
import type { Language } from "@codemirror/language";
import { classHighlighter, highlightTree } from "@lezer/highlight";

import type { Token } from "./codePieces.ts";

/** Larger texts are not highlighted. */
export const HIGHLIGHT_MAX = 400_000;
/** Time slice, within a frame. */
const SLICE_MS = 8;
/** Classes that highlight.css has a colour for; others are dropped. */
const HUES =
  /tok-(keyword|operatorKeyword|modifier|string2?|inserted|number|bool|atom|literal|url|definition|heading|labelName|typeName|className|namespace|macroName|comment|meta|emphasis|strong|link)\b/;
/** Maximum tokens per line. */
const TOKENS_MAX = 400;

/** Tokens by line; null if the text is too large or the work was aborted. */
export async function highlightLines(text: string, language: Language, off: AbortSignal): Promise<Token[][] | null> {
  if (text.length > HIGHLIGHT_MAX) return null;
  const parse = language.parser.startParse(text);
  let began = performance.now();
  for (;;) {
    const tree = parse.advance();
    if (tree) return tokensByLine(text, (put) => highlightTree(tree, classHighlighter, put));
    if (performance.now() - began < SLICE_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    if (off.aborted) return null;
    began = performance.now();
  }
}

type Put = (from: number, to: number, colour: string) => void;

function tokensByLine(text: string, each: (put: Put) => void): Token[][] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const all: Token[][] = starts.map(() => []);
  let line = 0;
  each((from, to, colour) => {
    if (!HUES.test(colour)) return;
    while (line + 1 < starts.length && (starts[line + 1] ?? 0) <= from) line++;
    for (let at = line; at < starts.length && (starts[at] ?? 0) < to; at++) {
      const start = starts[at] ?? 0;
      const end = (starts[at + 1] ?? text.length + 1) - 1;
      const token: Token = [Math.max(from, start) - start, Math.min(to, end) - start, colour];
      const tokens = all[at];
      if (tokens && token[1] > token[0] && tokens.length < TOKENS_MAX) tokens.push(token);
    }
  });
  return all;
}
