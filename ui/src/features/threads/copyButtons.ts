/** Adds copy buttons to code blocks inside other Markdown; top-level blocks have one already (CodeBlock). */
import { copyText } from "../../lib/browserFiles.ts";

/** `_html` is the element's source: the attachment runs again when it changes. */
export function addCopyButtons(_html: unknown): (element: HTMLElement) => void {
  return (element) => {
    for (const code of element.querySelectorAll<HTMLElement>("pre > code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy this code");
      button.onclick = () => void copyText(code.textContent ?? "");
      code.parentElement?.append(button);
    }
  };
}
