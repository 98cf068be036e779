/** Gives code that stands within other Markdown a button to copy it; code of its own has one already (CodeBlock). */
import { copyText } from "../../lib/browserFiles.ts";

/** `_html` is what the element was made from: another one is looked through again. */
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
