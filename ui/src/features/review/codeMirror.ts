/**
 * A code editor: the page's only use of CodeMirror, loaded on demand.
 *
 * Configures its extensions, keys and theme. Hidden characters are escaped as everywhere on the page.
 */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { type Language, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

import { RAW_BYTES, visibleCodePieces } from "../../lib/codePieces.ts";
import { HIDDEN } from "../../hidden_text.ts";

export interface EditorOptions {
  readonly text: string;
  readonly label: string;
  readonly language: Language | null;
  readonly numbers: boolean;
  /** The file is not UTF-8. */
  readonly bytes: boolean;
  readonly onchange: (text: string) => void;
  readonly ondone: () => void;
}

export function createEditor(parent: HTMLElement, editing: EditorOptions): EditorView {
  const state = EditorState.create({ doc: editing.text, extensions: extensions(editing) });
  const view = new EditorView({ parent, state });
  view.focus();
  return view;
}

function extensions({ label, language, numbers, bytes, onchange, ondone }: EditorOptions): Extension[] {
  const done = (): boolean => (ondone(), true);
  return [
    EditorState.lineSeparator.of("\n"), // a lone \r is part of its line, and shown escaped
    EditorState.tabSize.of(4),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": `${label}. Escape leaves it; what was written is kept.`, spellcheck: "false", autocapitalize: "off" }),
    EditorView.updateListener.of((update) => update.docChanged && onchange(update.state.doc.toString())),
    history(),
    drawSelection(),
    highlightSpecialChars({ specialChars: bytes ? OTHERS : HIDDEN, render: (code) => spelled(code, bytes) }),
    keymap.of([{ key: "Mod-Enter", run: done }, { key: "Escape", run: done }, indentWithTab, ...historyKeymap, ...defaultKeymap]),
    syntaxHighlighting(classHighlighter),
    numbers ? lineNumbers() : [],
    language ?? [],
    looks,
  ];
}

const OTHERS = new RegExp(`${HIDDEN.source}|${RAW_BYTES.source}`, "gu");

function spelled(code: number, bytes: boolean): HTMLElement {
  const piece = visibleCodePieces(String.fromCodePoint(code), bytes)[0];
  const mark = document.createElement("mark");
  mark.textContent = piece?.text ?? "";
  mark.title = piece?.flag ?? "";
  return mark;
}

const looks = EditorView.theme({
  "&": { backgroundColor: "var(--bg)", color: "var(--ink)", fontSize: "var(--size-code)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px", maxHeight: "60vh" },
  ".cm-content": { padding: "4px 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 8px 0 20px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--faint)", border: "0" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--term-selection)" },
  mark: { padding: "0 2px", borderRadius: "3px", background: "var(--red-wash)", color: "var(--red)", fontWeight: "var(--bold)" },
});
