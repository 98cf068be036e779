/**
 * Table of characters that a reader cannot see, or that change how the text around them looks.
 *
 * Generated from src/handrail/hidden_text.py with `python -m handrail.hidden_text > ui/src/hidden_text.ts`. Do not edit.
 * Exports: HIDDEN (what display escapes), HIDDEN_NAMES (names by code point), ESCAPES (short spellings).
 */

/** Matches each character of the table, but U+FE0F only where it does not follow a symbol. */
export const HIDDEN =
  /[\u{0}-\u{8}\u{b}-\u{1f}\u{7f}-\u{9f}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{1680}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{2000}-\u{200a}\u{200b}-\u{200d}\u{200e}-\u{200f}\u{2028}-\u{2029}\u{202a}-\u{202e}\u{202f}\u{205f}\u{2060}-\u{2064}\u{2065}\u{2066}-\u{2069}\u{206a}-\u{206f}\u{2800}\u{3000}\u{3164}\u{d800}-\u{dfff}\u{fe00}-\u{fe0e}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|(?<![\u{a9}\u{ae}\u{203c}\u{2049}\u{2122}\u{2139}\u{2190}-\u{21ff}\u{2300}-\u{23ff}\u{2460}-\u{24ff}\u{25a0}-\u{27bf}\u{2900}-\u{297f}\u{2b00}-\u{2bff}\u{3030}\u{303d}\u{3297}\u{3299}\u{1f000}-\u{1faff}])\u{fe0f}/gu;

/** First and last code point, and a name for people; sorted, without overlaps. */
export const HIDDEN_NAMES: readonly (readonly [number, number, string])[] = [
  [0x0000, 0x0008, "control character"],
  [0x000b, 0x001f, "control character"],
  [0x007f, 0x009f, "control character"],
  [0x00a0, 0x00a0, "no-break space"],
  [0x00ad, 0x00ad, "soft hyphen"],
  [0x034f, 0x034f, "invisible character"],
  [0x061c, 0x061c, "text direction mark"],
  [0x115f, 0x1160, "invisible character"],
  [0x1680, 0x1680, "unusual space"],
  [0x17b4, 0x17b5, "invisible character"],
  [0x180b, 0x180f, "invisible character"],
  [0x2000, 0x200a, "unusual space"],
  [0x200b, 0x200d, "zero-width character"],
  [0x200e, 0x200f, "text direction mark"],
  [0x2028, 0x2029, "unusual line break"],
  [0x202a, 0x202e, "text direction override"],
  [0x202f, 0x202f, "unusual space"],
  [0x205f, 0x205f, "unusual space"],
  [0x2060, 0x2064, "zero-width character"],
  [0x2065, 0x2065, "invisible character"],
  [0x2066, 0x2069, "text direction override"],
  [0x206a, 0x206f, "invisible character"],
  [0x2800, 0x2800, "invisible character"],
  [0x3000, 0x3000, "unusual space"],
  [0x3164, 0x3164, "invisible character"],
  [0xd800, 0xdfff, "half a character"],
  [0xfe00, 0xfe0f, "variation selector"],
  [0xfeff, 0xfeff, "zero-width character"],
  [0xffa0, 0xffa0, "invisible character"],
  [0xfff0, 0xfffb, "invisible character"],
  [0x13430, 0x1345f, "invisible character"],
  [0x1bca0, 0x1bca3, "invisible character"],
  [0x1d173, 0x1d17a, "invisible character"],
  [0xe0000, 0xe0fff, "invisible tag"],
];

/** Short spellings; every other character is spelled `\u{hex}`. */
export const ESCAPES: Readonly<Record<string, string>> = {
  "\u000d": "\\r",
  "\u0008": "\\b",
  "\u000c": "\\f",
  "\u000b": "\\v",
  "\u0000": "\\0",
  "\u001b": "\\e",
};
