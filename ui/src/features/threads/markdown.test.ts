import assert from "node:assert/strict";
import { test } from "node:test";

import { type MarkdownBlock, MarkdownBlocks } from "./markdown.ts";

const read = (text: string): readonly MarkdownBlock[] => new MarkdownBlocks((html) => html).take(text);
const html = (text: string): string => read(text).map((block) => (block.kind === "html" ? block.html.trim() : `[${block.language}] ${block.code}`)).join("\n");

const LONG = `# Title

Some *words* and \`code\`, over
two lines.

- one
- two

  with more to it

1. first
2. second

> quoted
still quoted

\`\`\`py
def f():

    return 1
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

[ref]: https://example.org

A [ref] at last, and an open \`\`\` fence:

\`\`\`ts
const x = 1;
`;

test("text that comes letter by letter is read as if it had come at once", () => {
  for (const step of [1, 2, 3, 7, 40]) {
    const blocks = new MarkdownBlocks((one) => one);
    let last: readonly MarkdownBlock[] = [];
    for (let at = 0; at < LONG.length; at += step) last = blocks.take(LONG.slice(0, at));
    last = blocks.take(LONG);
    assert.deepEqual(last, read(LONG), `in steps of ${step}`);
  }
});

test("only the last block is read again when a text grows", () => {
  const drawn: string[] = [];
  const blocks = new MarkdownBlocks((one) => (drawn.push(one), one));
  blocks.take("one\n\ntwo\n\nthr");
  const before = drawn.length;
  const first = blocks.take("one\n\ntwo\n\nthree");
  assert.deepEqual(drawn.slice(before), ["<p>three</p>\n"]);
  assert.equal(blocks.take("one\n\ntwo\n\nthree!")[0], first[0]);
});

test("a text that is not the last one and more is read from its beginning", () => {
  const blocks = new MarkdownBlocks((one) => one);
  blocks.take("one\n\ntwo\n\nthree");
  assert.deepEqual(blocks.take("other\n\nwords"), read("other\n\nwords"));
});

test("HTML that somebody wrote is shown, and has no effect", () => {
  assert.equal(html("<script>alert(1)</script>"), "<p>&#60;script&#62;alert(1)&#60;/script&#62;</p>");
  assert.equal(html("a <b onclick=x>b</b>"), "<p>a &#60;b onclick=x&#62;b&#60;/b&#62;</p>");
  assert.equal(html("`<i>`"), "<p><code>&#60;i&#62;</code></p>");
});

test("no picture is loaded from elsewhere: it is a link", () => {
  const shown = html("![cat](https://example.org/cat.png)");
  assert.ok(!shown.includes("<img"));
  assert.match(shown, /<a href="https:[^"]*cat\.png"[^>]*rel="noopener noreferrer nofollow"[^>]*>picture: cat<\/a>/);
});

test("a link leads to the web or to a letter; anything else is words", () => {
  assert.match(html("[a](https://example.org)"), /target="_blank" rel="noopener noreferrer nofollow"/);
  assert.match(html("[a](mailto:ada@example.org)"), /href="mailto:ada@example.org"/);
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "src/auth.py", "//evil.example", "https://"]) {
    assert.ok(!html(`[a](${href})`).includes("<a "), href);
  }
});

test("a link whose words are another address says where it leads", () => {
  assert.match(html("[github.com](https://evil.example/github.com)"), /\(leads to evil\.example\)/);
  assert.ok(!html("[github.com/a](https://www.github.com/a)").includes("leads to"));
  assert.ok(!html("[the repository](https://github.com)").includes("leads to"));
});

test("what hides in code is spelled out", () => {
  assert.equal(html("`a\u202eb`"), "<p><code>a\\u{202e}b</code></p>");
});

test("headings stay below those of the page", () => {
  assert.equal(html("# a\n\n#### b"), "<h3>a</h3>\n<h6>b</h6>");
});

test("code has its language, and is no markup", () => {
  assert.equal(html("```py title=x\n<b>\n```"), "[py] <b>");
});

test("where people type, a line that ends is a line that ends", () => {
  assert.deepEqual(new MarkdownBlocks((one) => one, true).take("a\nb"), [{ kind: "html", html: "<p>a<br>b</p>\n" }]);
});
