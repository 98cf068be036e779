/**
 * The characters that the page escapes, as ranges of code points: the page's only such table.
 *
 * visibleText.ts builds its pattern from it; names for some of them are there.
 */
export const HIDDEN_RANGES: readonly (readonly [number, number])[] = [
  [0x0000, 0x0008], // C0 controls but tab and newline
  [0x000b, 0x001f], // C0 controls
  [0x007f, 0x00a0], // DEL, C1 controls, no-break space
  [0x00ad, 0x00ad], // soft hyphen
  [0x034f, 0x034f], // combining grapheme joiner
  [0x061c, 0x061c], // Arabic letter mark
  [0x115f, 0x1160], // Hangul fillers
  [0x1680, 0x1680], // Ogham space
  [0x17b4, 0x17b5], // Khmer inherent vowels
  [0x180b, 0x180f], // Mongolian selectors
  [0x2000, 0x200f], // spaces, zero-width, direction marks
  [0x2028, 0x202f], // separators, bidi embeddings, narrow space
  [0x205f, 0x206f], // space, joiners, bidi isolates
  [0x2800, 0x2800], // blank Braille
  [0x3000, 0x3000], // ideographic space
  [0x3164, 0x3164], // Hangul filler
  [0xd800, 0xdfff], // lone surrogates
  [0xfe00, 0xfe0e], // variation selectors
  [0xfeff, 0xfeff], // byte order mark
  [0xffa0, 0xffa0], // halfwidth Hangul filler
  [0xfff0, 0xfffb], // specials
  [0x1d173, 0x1d17a], // musical format characters
  [0xe0000, 0xe0fff], // tags, variation selectors
];
