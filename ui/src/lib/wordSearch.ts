/** Words, "quoted phrases" and -words, as the daemon reads them in a search, for lists that the page has whole; pure. */

export interface WordSearch {
  readonly words: readonly { readonly text: string; readonly negated: boolean }[];
  /** Keys as in `status:failed`: only calls, threads and terminals have any. */
  readonly keys: readonly string[];
}

const TERM = /(-?)(?:([A-Za-z_]+):(?!\/\/))?("[^"]*"?|\S+)/g;
/** Characters of a word such as `rf` that `-` does not negate: it is more likely an option of a command. */
const OPTION_MAX = 2;

export function parseWords(text: string): WordSearch {
  const terms = [...text.matchAll(TERM)];
  const words = terms.flatMap(([, minus = "", key, value = ""]) => {
    const quoted = value.startsWith('"');
    const word = (quoted ? value.replaceAll('"', "") : value).toLowerCase();
    const negated = minus !== "" && (quoted || (word.length > OPTION_MAX && !word.startsWith("-")));
    return key || !word ? [] : [{ text: negated || quoted ? word : minus + word, negated }];
  });
  return { words, keys: [...new Set(terms.flatMap(([, , key]) => key ?? []))] };
}

/** Whether the text has every word, and none with a minus. */
export function hasWords(text: string, { words }: WordSearch): boolean {
  const lower = text.toLowerCase();
  return words.every(({ text: word, negated }) => lower.includes(word) !== negated);
}
