/**
 * The last guard before markup is drawn: only a few plain elements, and no address but those of links.
 *
 * Owns that list. It needs a browser, and does not know Markdown.
 */
import DOMPurify from "dompurify";

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const ATTRIBUTES = ["align", "class", "href", "rel", "start", "target", "title"];

/** What may be drawn: in a browser that wants a word for it (Trusted Types), this is the only one that has it. */
export function sanitizeHtml(html: string): { toString(): string } {
  return DOMPurify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ADD_URI_SAFE_ATTR: ["align", "rel", "start", "target"], // these hold no address
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
  });
}
