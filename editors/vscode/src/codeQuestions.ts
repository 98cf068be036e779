/**
 * Answers what agents ask about code, with what the editor's language servers know: problems, symbols, references, renames.
 *
 * The questions come from the daemon, which has checked and recorded them. Nothing is changed here: a rename is only planned.
 */
import { readFile } from "node:fs/promises";
import { sep } from "node:path";

import * as vscode from "vscode";

import type { Daemon } from "./daemon.ts";
import type { Question } from "./hello.ts";

/** Of one answer: bounds what a language server with a hundred thousand problems makes this send. */
const ITEMS_MAX = 1000;
const EDITS_MAX = 20_000;
/** For the check of a file that was just opened or changed: a language server may have to start and read the project. */
const CHECK_MS = 20_000;
/** For the same, once the language server answers. A check that finds the same problems as before is not reported. */
const CHECK_RUNNING_MS = 4_000;
/** For an extension with a language server to start, after the first file of its language was opened. */
const SERVER_MS = 8_000;
const POLL_MS = 250;
/** Without another change for this long, a check is taken to be over. */
const QUIET_MS = 700;
/** How long the editor may take to read a file again that was changed on disk. */
const RELOAD_MS = 5_000;
const TEXT_MAX = 2000;

const SEVERITIES = ["error", "warning", "information", "hint"] as const;

type Input = Readonly<Record<string, unknown>>;

/** The editor cannot answer; the message is for the agent. */
class Unanswerable extends Error {}

export class CodeQuestions implements vscode.Disposable {
  private readonly open = new Map<number, vscode.CancellationTokenSource>();
  private readonly checks = new Checks();
  private readonly held: vscode.Disposable[];

  constructor(private readonly daemon: Daemon) {
    this.held = [
      this.checks,
      daemon.onChange(() => this.offer()),
      daemon.onQuestion((question) => void this.take(question)),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.offer()),
    ];
  }

  dispose(): void {
    for (const source of this.open.values()) source.cancel();
    for (const one of this.held) one.dispose();
  }

  private offer(): void {
    if (this.daemon.standing.kind === "live") this.daemon.send({ folders: folders() });
    else for (const source of this.open.values()) source.cancel();
  }

  private async take({ ask, cancel, what, input }: Question): Promise<void> {
    if (cancel !== undefined) return this.open.get(cancel)?.cancel();
    if (ask === undefined) return;
    const source = new vscode.CancellationTokenSource();
    this.open.set(ask, source);
    try {
      const result = await this.answer(what ?? "", input ?? {}, source.token);
      if (!source.token.isCancellationRequested) this.daemon.send({ answer: ask, result });
    } catch (error) {
      const message = error instanceof Unanswerable ? error.message : `The editor could not answer: ${String(error)}`;
      this.daemon.send({ answer: ask, error: message.slice(0, TEXT_MAX) });
    } finally {
      this.open.delete(ask);
      source.dispose();
    }
  }

  private answer(what: string, input: Input, token: vscode.CancellationToken): Promise<unknown> {
    const uri = vscode.Uri.file(String(input.path));
    switch (what) {
      case "diagnostics":
        return input.folder === true ? this.folderDiagnostics(uri, input) : this.fileDiagnostics(uri, input, token);
      case "outline":
        return outline(uri);
      case "find symbols":
        return findSymbols(uri, String(input.query));
      case "references":
        return references(uri, input);
      case "rename":
        return planRename(uri, input);
      default:
        throw new Unanswerable("This editor's extension does not know this question. `handrail connect vscode` updates it.");
    }
  }

  private async folderDiagnostics(uri: vscode.Uri, input: Input): Promise<unknown> {
    const known = vscode.languages.getDiagnostics().filter(([file]) => file.scheme === "file" && isBelow(file.fsPath, uri.fsPath));
    return listDiagnostics(known, input);
  }

  private async fileDiagnostics(uri: vscode.Uri, input: Input, token: vscode.CancellationToken): Promise<unknown> {
    const shown = await showInBackground(uri);
    try {
      const document = await openDocument(uri);
      await this.checks.untilReloaded(document, token);
      const finished = await this.checks.untilChecked(document, shown.isNew, token);
      return { ...listDiagnostics([[uri, vscode.languages.getDiagnostics(uri)]], input), unfinished: !finished };
    } finally {
      await shown.close();
    }
  }
}

/** When documents last changed, and when they were last checked. */
class Checks implements vscode.Disposable {
  private readonly changedAt = new Map<string, number>();
  private readonly checkedAt = new Map<string, number>();
  private readonly events = new vscode.EventEmitter<void>();
  private readonly held: vscode.Disposable[];

  constructor() {
    this.held = [
      this.events,
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length) this.note(this.changedAt, document.uri);
      }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        this.changedAt.delete(uri.toString());
        this.checkedAt.delete(uri.toString());
      }),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        for (const uri of uris) if (vscode.workspace.textDocuments.some((one) => one.uri.toString() === uri.toString())) this.note(this.checkedAt, uri);
      }),
    ];
  }

  dispose(): void {
    for (const one of this.held) one.dispose();
  }

  /** Waits until a document without unsaved changes has the content of its file. */
  async untilReloaded(document: vscode.TextDocument, token: vscode.CancellationToken): Promise<void> {
    const deadline = Date.now() + RELOAD_MS;
    while (!document.isDirty && Date.now() < deadline && !token.isCancellationRequested) {
      if (plain(document.getText()) === plain(await readFile(document.uri.fsPath, "utf8").catch(() => document.getText()))) return;
      await this.next(200, token);
    }
  }

  /** Waits until the language servers have checked the document as it is; false if that is not certain. */
  async untilChecked(document: vscode.TextDocument, isNew: boolean, token: vscode.CancellationToken): Promise<boolean> {
    const key = document.uri.toString();
    const began = Date.now();
    let deadline = began + CHECK_MS;
    let answers = false; // a language server is there, and has read the project
    const isChecked = (): boolean => (this.checkedAt.get(key) ?? 0) >= (isNew ? began : (this.changedAt.get(key) ?? 0));
    if (!isChecked())
      void isServed(document.uri).then((served) => {
        answers = served;
        deadline = Math.min(deadline, Date.now() + (served ? CHECK_RUNNING_MS : 0));
        this.events.fire();
      });
    while (!isChecked() && Date.now() < deadline && !token.isCancellationRequested) await this.next(deadline - Date.now(), token);
    const last = (): number => Math.max(this.changedAt.get(key) ?? 0, this.checkedAt.get(key) ?? 0);
    for (let rest = last() + QUIET_MS - Date.now(); rest > 0 && !token.isCancellationRequested; rest = last() + QUIET_MS - Date.now()) await this.next(rest, token);
    return isChecked() || answers;
  }

  private note(times: Map<string, number>, uri: vscode.Uri): void {
    times.set(uri.toString(), Date.now());
    this.events.fire();
  }

  /** Waits for the next event, the end of the question, or so long. */
  private next(ms: number, token: vscode.CancellationToken): Promise<void> {
    return new Promise((resolve) => {
      const held = [this.events.event(() => end()), token.onCancellationRequested(() => end())];
      const timer = setTimeout(() => end(), Math.max(ms, 1));
      const end = (): void => {
        clearTimeout(timer);
        for (const one of held) one.dispose();
        resolve();
      };
    });
  }
}

/** Resolves when a language server has read the project of a file; false if there is none for it. */
async function isServed(uri: vscode.Uri): Promise<boolean> {
  const deadline = Date.now() + SERVER_MS;
  while (!(await vscode.commands.executeCommand<unknown[] | undefined>("vscode.executeDocumentSymbolProvider", uri).then(undefined, () => undefined))) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  // An outline needs only the file, but to look for references a server reads the project first.
  await vscode.commands.executeCommand("vscode.executeReferenceProvider", uri, new vscode.Position(0, 0)).then(undefined, () => undefined);
  return true;
}

function plain(text: string): string {
  return text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
}

function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

async function openDocument(uri: vscode.Uri): Promise<vscode.TextDocument> {
  try {
    return await vscode.workspace.openTextDocument(uri);
  } catch (error) {
    throw new Unanswerable(`The editor cannot open ${uri.fsPath} as text: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Gives a file a tab behind the active one, if it has none: some language servers check only files that have one.
 *
 * The tab is closed again, unless the person has turned to it meanwhile.
 */
async function showInBackground(uri: vscode.Uri): Promise<{ isNew: boolean; close(): Promise<void> }> {
  const tabs = (): vscode.Tab[] => vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === uri.toString());
  if (tabs().length) return { isNew: false, close: async () => undefined };
  await vscode.commands.executeCommand("vscode.open", uri, { background: true, preserveFocus: true, preview: false });
  return {
    isNew: true,
    close: async () => {
      const unused = tabs().filter((tab) => !tab.isActive && !tab.isDirty);
      if (unused.length) await vscode.window.tabGroups.close(unused, true);
    },
  };
}

function listDiagnostics(known: readonly (readonly [vscode.Uri, readonly vscode.Diagnostic[]])[], input: Input): { items: unknown[]; total: number } {
  const least = typeof input.severity === "number" ? input.severity : SEVERITIES.length;
  const all = known.flatMap(([uri, list]) => list.filter(({ severity }) => severity <= least).map((one) => ({ uri, one })));
  all.sort((a, b) => a.one.severity - b.one.severity);
  const items = all.slice(0, ITEMS_MAX).map(({ uri, one: { range, severity, message, source, code } }) => ({
    path: uri.fsPath,
    line: range.start.line + 1,
    column: range.start.character + 1,
    severity: SEVERITIES[severity],
    message: message.slice(0, TEXT_MAX),
    source: source ?? "",
    code: String(typeof code === "object" ? code.value : (code ?? "")),
  }));
  return { items, total: all.length };
}

async function outline(uri: vscode.Uri): Promise<unknown> {
  await openDocument(uri);
  const found = (await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>("vscode.executeDocumentSymbolProvider", uri)) ?? [];
  const items: unknown[] = [];
  let total = 0;
  const add = (symbol: vscode.DocumentSymbol | vscode.SymbolInformation, depth: number, container: string): void => {
    const range = "location" in symbol ? symbol.location.range : symbol.range;
    total += 1;
    if (items.length < ITEMS_MAX) items.push({ ...symbolFacts(symbol, uri, range), container, depth });
    if ("children" in symbol) for (const child of symbol.children) add(child, depth + 1, symbol.name);
  };
  for (const symbol of found) add(symbol, 0, "");
  return { items, total };
}

async function findSymbols(uri: vscode.Uri, query: string): Promise<unknown> {
  const found = (await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>("vscode.executeWorkspaceSymbolProvider", query)) ?? [];
  const here = found.filter(({ location }) => location.uri.scheme === "file" && isBelow(location.uri.fsPath, uri.fsPath));
  const items = here.slice(0, ITEMS_MAX).map((symbol) => ({ ...symbolFacts(symbol, symbol.location.uri, symbol.location.range), container: symbol.containerName }));
  return { items, total: here.length };
}

function symbolFacts(symbol: vscode.DocumentSymbol | vscode.SymbolInformation, uri: vscode.Uri, range: vscode.Range): object {
  const kind = vscode.SymbolKind[symbol.kind] ?? "symbol";
  return { path: uri.fsPath, name: symbol.name.slice(0, TEXT_MAX), kind: kind.replace(/(?<=[a-z])[A-Z]/g, " $&").toLowerCase(), line: range.start.line + 1, end_line: range.end.line + 1 };
}

async function references(uri: vscode.Uri, input: Input): Promise<unknown> {
  const at = findSymbol(await openDocument(uri), input);
  const found = (await vscode.commands.executeCommand<vscode.Location[] | undefined>("vscode.executeReferenceProvider", uri, at)) ?? [];
  const files = found.filter((location) => location.uri.scheme === "file");
  const items: unknown[] = [];
  for (const location of files.slice(0, ITEMS_MAX)) {
    const document = await vscode.workspace.openTextDocument(location.uri).then(undefined, () => null);
    const { line, character } = location.range.start;
    const text = document && line < document.lineCount ? document.lineAt(line).text.slice(0, TEXT_MAX) : "";
    items.push({ path: location.uri.fsPath, line: line + 1, column: character + 1, text });
  }
  return { items, total: files.length };
}

/** Where a symbol stands: in the given line, or else where it occurs first, as a whole word. */
function findSymbol(document: vscode.TextDocument, { symbol, line }: Input): vscode.Position {
  const name = String(symbol);
  const word = new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\p{L}\\p{N}_$])`, "u");
  const only = typeof line === "number" ? line - 1 : null;
  if (only !== null && only >= document.lineCount) throw new Unanswerable(`There is no line ${line}: the file has ${document.lineCount} lines.`);
  for (let at = only ?? 0; at <= (only ?? document.lineCount - 1); at++) {
    const found = word.exec(document.lineAt(at).text);
    if (found) return new vscode.Position(at, found.index);
  }
  throw new Unanswerable(`${name} does not occur in ${only === null ? "the file" : `line ${line}`}, as the editor has it. Read the file again.`);
}

async function planRename(uri: vscode.Uri, input: Input): Promise<unknown> {
  const at = findSymbol(await openDocument(uri), input);
  const edit = await renameEdit(uri, at, String(input.new_name));
  const files = [];
  let count = 0;
  for (const [file, edits] of edit.entries()) {
    count += edits.length;
    if (file.scheme !== "file") throw new Unanswerable(`The rename would change ${file.toString()}, which is no file on disk.`);
    if (count > EDITS_MAX) throw new Unanswerable(`The rename would change more than ${EDITS_MAX} places, which is too much for one call.`);
    const document = await openDocument(file);
    files.push({ path: file.fsPath, unsaved: document.isDirty, edits: edits.map((one) => editFacts(document, one)) });
  }
  return { files };
}

async function renameEdit(uri: vscode.Uri, at: vscode.Position, name: string): Promise<vscode.WorkspaceEdit> {
  try {
    const edit = await vscode.commands.executeCommand<vscode.WorkspaceEdit | undefined>("vscode.executeDocumentRenameProvider", uri, at, name);
    if (edit) return edit;
  } catch (error) {
    throw new Unanswerable(`The language server refuses to rename this: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new Unanswerable("No language server of the editor can rename symbols in this file.");
}

function editFacts(document: vscode.TextDocument, { range: { start, end }, newText }: vscode.TextEdit): object {
  const old = document.getText(new vscode.Range(start, end));
  return { line: start.line, column: start.character, end_line: end.line, end_column: end.character, old, new: newText };
}
