/** Sanitises HTML before it is rendered: few plain elements, and no URLs except links. Needs a browser. */
import DOMPurify from "dompurify";

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const ATTRIBUTES = ["align", "class", "href", "rel", "start", "target", "title"];

/** The only Trusted Types policy of the page. */
export function sanitizeHtml(html: string): { toString(): string } {
  return DOMPurify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ADD_URI_SAFE_ATTR: ["align", "rel", "start", "target"], // these attributes hold no URLs
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
  });
}
