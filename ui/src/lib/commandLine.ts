/** What a person types as a command line; pure. */

/** The words of a command line, as a shell would split them: quotes keep spaces. An open quote ends with the text. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  for (const [, double, single, plain] of line.matchAll(/"((?:[^"\\]|\\.)*)"?|'([^']*)'?|((?:[^\s"'\\]|\\.)+)/g)) {
    words.push((double ?? plain)?.replace(/\\(.)/g, "$1") ?? single ?? "");
  }
  return words;
}
