/**
 * Actions on a terminal.
 *
 * Sends the requests and shows their errors as toasts. The resulting state arrives over the terminal's socket, as in
 * every tab.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { Command, Found } from "../../api/types.ts";
import { renderLines } from "../../lib/ansi.ts";
import { copyText, saveFile } from "../../lib/browserFiles.ts";
import { pluralize } from "../../lib/duration.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";

/** Larger outputs are not copied to the clipboard. */
const COPIED_BYTES = 8 << 20;
const FOUND = 200;

export interface TerminalActions {
  take(): Promise<boolean>;
  release(): Promise<boolean>;
  interrupt(): Promise<boolean>;
  stop(): Promise<boolean>;
  search(words: string): Promise<Found | null>;
  save(mode: "text" | "raw", name: string): Promise<boolean>;
  /** The whole output as text. */
  copyAll(): Promise<boolean>;
  copyOutput(command: Command): Promise<boolean>;
}

export function terminalActions(api: Api, id: string): TerminalActions {
  return {
    take: () => done(() => api.takeTerminal(id)),
    release: () => done(() => api.releaseTerminal(id)),
    interrupt: () => done(() => api.pressKeys(id, ["ctrl-c"])),
    stop: () =>
      done(async () => {
        const closed = await api.closeTerminal(id);
        if (closed.left.length) toasts.show(`${pluralize(closed.left.length, "process")} could not be ended.`, "red");
      }),
    async search(words) {
      const query = { pattern: escaped(words), max_results: FOUND, case_insensitive: true };
      let found: Found | null = null;
      await done(async () => (found = await api.searchOutput(id, query)));
      return found;
    },
    save: (mode, name) =>
      done(async () => {
        const blob = await api.output(id, { mode, download: true });
        saveFile(blob, `${name.replace(/[^\w.-]+/g, "-").slice(0, 60) || "terminal"}-${id}.${mode === "raw" ? "raw" : "txt"}`);
      }),
    copyAll: () =>
      done(async () => {
        const blob = await api.output(id, { mode: "text", download: true });
        if (blob.size > COPIED_BYTES) return toasts.show("That is too much to copy. Download it instead.");
        await copyText(await blob.text());
      }),
    copyOutput: (command) =>
      done(async () => {
        const blob = await api.output(id, { mode: "raw", after: command.output, download: true });
        const part = blob.slice(0, command.end === null ? blob.size : command.end - command.output);
        if (part.size > COPIED_BYTES) return toasts.show("That is too much to copy. Download it instead.");
        await copyText(renderLines(await part.text()));
      }),
  };
}

async function done(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) toasts.show(error.message);
    else showError(error);
    return false;
  }
}

/** Escapes the search text: the search field takes no patterns. */
function escaped(words: string): string {
  return words.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
