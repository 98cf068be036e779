/** Where words occur in the text below an element, also across several text nodes. Upper and lower case are the same. */

/** Ranges above this number are not looked for: painting them takes longer than a person waits. */
const MOST = 2000;

export function textRanges(root: HTMLElement, words: string): Range[] {
  const found: Range[] = [];
  for (const line of root.querySelectorAll("pre")) {
    collect(line, words.toLowerCase(), found);
    if (found.length >= MOST) break;
  }
  return found;
}

function collect(root: Element, words: string, found: Range[]): void {
  const nodes = textNodes(root);
  const text = nodes.map(({ data }) => data).join("").toLowerCase();
  for (let at = text.indexOf(words); at >= 0 && found.length < MOST; at = text.indexOf(words, at + words.length)) {
    const range = document.createRange();
    range.setStart(...position(nodes, at));
    range.setEnd(...position(nodes, at + words.length));
    found.push(range);
  }
}

function textNodes(root: Element): Text[] {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes: Text[] = [];
  while (walker.nextNode()) nodes.push(walker.currentNode as Text);
  return nodes;
}

/** The node and the offset in it of a position in the whole text. */
function position(nodes: readonly Text[], at: number): [Text, number] {
  let left = at;
  for (const node of nodes) {
    if (left <= node.length) return [node, left];
    left -= node.length;
  }
  const last = nodes.at(-1) as Text;
  return [last, last.length];
}
