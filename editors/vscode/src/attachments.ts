/**
 * What a person adds to the message that they write to an agent: the selection, a file, its problems.
 *
 * It becomes text of the message, so that the person sees all that is sent. `@path` attaches a file.
 */
import * as vscode from "vscode";

/** Characters of a selection: a larger one is better read by the agent itself. */
const SELECTION_MAX = 20_000;
const PROBLEMS_MAX = 50;
const SEVERITIES = ["error", "warning", "information", "hint"];

type Attach = (text: string) => unknown;

/** The commands, by name. */
export function attachments(attach: Attach): Record<string, (uri?: vscode.Uri) => unknown> {
  return {
    addSelection: () => addSelection(attach),
    addFile: (uri) => addFile(attach, uri),
    addProblems: () => addProblems(attach),
  };
}

function addSelection(attach: Attach): unknown {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return say("Open a file and select something in it.");
  const { document, selection } = editor;
  const range = selection.isEmpty ? document.lineAt(selection.active.line).range : selection;
  const text = document.getText(range);
  if (!text.trim()) return say("Nothing is selected, and the line is empty.");
  if (text.length > SELECTION_MAX) return say(`The selection is longer than ${SELECTION_MAX.toLocaleString("en")} characters. Add the file instead, or select less.`);
  const lines = range.isSingleLine ? `line ${range.start.line + 1}` : `lines ${range.start.line + 1} to ${range.end.line + 1}`;
  return attach(`${mention(document.uri)} ${lines}:\n${fence(text, document.languageId)}`);
}

function addFile(attach: Attach, uri = vscode.window.activeTextEditor?.document.uri): unknown {
  return uri?.scheme === "file" ? attach(mention(uri)) : say("Open a file that is on disk.");
}

function addProblems(attach: Attach): unknown {
  const uri = vscode.window.activeTextEditor?.document.uri;
  if (!uri) return say("Open a file.");
  const problems = vscode.languages.getDiagnostics(uri).toSorted((a, b) => a.severity - b.severity);
  if (!problems.length) return say("The editor reports no problems in this file.");
  const rows = problems.slice(0, PROBLEMS_MAX).map(({ range, severity, message, source }) => `- line ${range.start.line + 1}: ${SEVERITIES[severity]}: ${message.replace(/\s+/g, " ")}${source ? ` (${source})` : ""}`);
  const rest = problems.length > PROBLEMS_MAX ? [`- and ${problems.length - PROBLEMS_MAX} more`] : [];
  return attach([`Problems in ${mention(uri)} :`, ...rows, ...rest].join("\n"));
}

/** How a message names a file: relative to the folder if the window has one. A path with spaces is no mention, only text. */
export function mention(uri: vscode.Uri): string {
  const isOnly = vscode.workspace.workspaceFolders?.length === 1;
  const path = isOnly ? vscode.workspace.asRelativePath(uri, false) : uri.fsPath;
  return uri.scheme !== "file" ? uri.toString() : /[\s@"'`<>]/.test(path) ? path : `@${path}`;
}

/** A block of code whose fence is longer than any in it. */
export function fence(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const mark = "`".repeat(longest + 1);
  return `${mark}${language === "plaintext" ? "" : language}\n${text.replace(/\n$/, "")}\n${mark}`;
}

function say(sentence: string): void {
  void vscode.window.showInformationMessage(sentence);
}
