/**
 * An incremental Markdown parser: only the last block is parsed again as text grows; pure.
 *
 * Raw HTML is escaped, external images become links, and misleading links show their host. The output is sanitised
 * before it is rendered (sanitize.ts).
 */
import { Lexer, type MarkedOptions, Parser, Renderer, type Token, type Tokens } from "marked";

import { visibleText } from "../../lib/visibleText.ts";

/** `Html` is the sanitiser's output type, which may be TrustedHTML. */
export type MarkdownBlock<Html = string> = { readonly kind: "html"; readonly html: Html } | { readonly kind: "code"; readonly code: string; readonly language: string };

export class MarkdownBlocks<Html = string> {
  private readonly options: MarkedOptions;
  private readonly clean: (html: string) => Html;
  /** The text before the last block; it does not change any more. */
  private done = "";
  private settled: MarkdownBlock<Html>[] = [];
  /** Link reference definitions so far. */
  private links: Tokens.Def[] = [];

  /** `breaks`: newlines become line breaks. */
  constructor(clean: (html: string) => Html, breaks = false) {
    this.options = { gfm: true, breaks, renderer: new Safe() };
    this.clean = clean;
  }

  /** The blocks of a text that usually extends the last one. */
  take(text: string): readonly MarkdownBlock<Html>[] {
    const whole = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!whole.startsWith(this.done)) this.forget();
    const tokens = this.read(whole.slice(this.done.length));
    const last = tokens.findLastIndex(({ type }) => type !== "space");
    this.settle(tokens.slice(0, Math.max(last, 0)), whole);
    return [...this.settled, ...this.drawn(tokens.slice(Math.max(last, 0)))];
  }

  private forget(): void {
    this.done = "";
    this.settled = [];
    this.links = [];
  }

  private read(text: string): Token[] {
    const lexer = new Lexer(this.options);
    for (const { tag, href, title } of this.links) lexer.tokens.links[tag] = { href, title: title ?? null };
    return lexer.lex(text);
  }

  private settle(tokens: readonly Token[], whole: string): void {
    const raw = this.done + tokens.map((token) => token.raw).join("");
    if (!whole.startsWith(raw)) return; // the parser changed the source text: parse it again next time
    this.done = raw;
    this.links.push(...tokens.filter((token): token is Tokens.Def => token.type === "def"));
    this.settled.push(...this.drawn(tokens));
  }

  private drawn(tokens: readonly Token[]): MarkdownBlock<Html>[] {
    return tokens.flatMap((token): MarkdownBlock<Html>[] => {
      if (token.type === "space" || token.type === "def") return [];
      if (token.type === "code") return [{ kind: "code", code: (token as Tokens.Code).text, language: ((token as Tokens.Code).lang ?? "").split(/\s/)[0] ?? "" }];
      return [{ kind: "html", html: this.clean(Parser.parse([token], this.options)) }];
    });
  }
}

/** Overrides of the default rendering. */
class Safe extends Renderer {
  override html({ text, block }: Tokens.HTML | Tokens.Tag): string {
    return block ? `<p>${escaped(text.trim())}</p>` : escaped(text);
  }

  override heading({ tokens, depth }: Tokens.Heading): string {
    const level = Math.min(6, depth + 2); // the page has headings above these
    return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
  }

  override codespan({ text }: Tokens.Codespan): string {
    return `<code>${escaped(visibleText(text))}</code>`;
  }

  override code({ text }: Tokens.Code): string {
    return `<pre><code>${escaped(visibleText(text))}</code></pre>`;
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return checked ? "☑ " : "☐ ";
  }

  /** Never loaded: a request would tell the server that the message was read. */
  override image({ href, text }: Tokens.Image): string {
    const words = `picture: ${text || href}`;
    return isLink(href) ? anchor(href, escaped(words)) : `<span class="path" title="${escaped(href)}">${escaped(words)}</span>`;
  }

  override link({ href, tokens, text }: Tokens.Link): string {
    const inner = this.parser.parseInline(tokens);
    if (!isLink(href)) return `<span class="path" title="${escaped(href)}">${inner}</span>`;
    return anchor(href, inner) + (misleads(text, href) ? ` <span class="really">(leads to ${escaped(hostOf(href))})</span>` : "");
  }
}

function anchor(href: string, inner: string): string {
  return `<a href="${escaped(href)}" title="${escaped(href)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>`;
}

function isLink(href: string): boolean {
  return /^(https?:\/\/|mailto:)/i.test(href) && URL.canParse(href);
}

function hostOf(href: string): string {
  const { host, pathname } = new URL(href);
  return host || pathname;
}

/** Whether the text looks like a URL of another host. */
function misleads(words: string, href: string): boolean {
  const shown = /^\s*(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})(?=[\s/:?#]|$)/i.exec(words)?.[1];
  return shown !== undefined && /^https?:/i.test(href) && new URL(href).hostname.replace(/^www\./, "") !== shown.toLowerCase().replace(/^www\./, "");
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
