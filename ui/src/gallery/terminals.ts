/** Fixtures: terminals in every state, and their output. Never loaded by the page. */
import type { Asks, Command, TerminalDetail, TerminalView } from "../api/types.ts";
import type { TerminalActions } from "../features/terminals/terminalActions.ts";
import type { AttachFunction } from "../features/terminals/terminalSession.svelte.ts";
import { toasts } from "../state/toasts.svelte.ts";

export const NONCE = "5ca1ab1e";
const NOW = Date.now();
/** Daemon time plus this is page time. */
export const SKEW = performance.now() - NOW;
const AGENT = { person: false, name: "claude-code", workspace: "/home/ada/api-server" };
const PERSON = { person: true, name: "a person on the page", workspace: null };

export function terminal(id: string, facts: Partial<TerminalView> = {}): TerminalView {
  return {
    id,
    seq: 1,
    name: "api tests",
    of: "tracked",
    owner: AGENT,
    call_id: null,
    shell: "/usr/bin/bash",
    argv: ["/usr/bin/bash"],
    size: [80, 24],
    running: true,
    pid: 4242,
    exit_code: null,
    signal: null,
    lost: false,
    agent_gone: false,
    cwd: "/home/ada/api-server",
    busy: false,
    foreground: "bash",
    asks: null,
    taken: null,
    attached: false,
    started_at: NOW - 754_000,
    ended_at: null,
    last_output_at: NOW - 4000,
    bytes: 18_240,
    first: 0,
    lines_dropped: 0,
    forgotten: false,
    ...facts,
  };
}

export const secret: Asks = { prompt: "[sudo] password for ada: ", sure: "certain", secret: true, since: NOW - 20_000 };
export const yes: Asks = { prompt: "Continue? [y/N] ", sure: "certain", secret: false, since: NOW - 9000 };
export const perhaps: Asks = { ...yes, sure: "likely", prompt: "? Which framework would you like" };

const over = { running: false, ended_at: NOW - 60_000, last_output_at: NOW - 61_000 };

export const rows: readonly TerminalView[] = [
  terminal("x1", { name: "sudo apt install ripgrep", of: "command", asks: secret, busy: true, foreground: "sudo" }),
  terminal("x2", { name: "dev server", busy: true, foreground: "node" }),
  terminal("x3", { name: "npm create vite", of: "command", asks: perhaps, busy: true, foreground: "node" }),
  terminal("x4"),
  terminal("x12", { name: "npm run build -- --watch", of: "command", agent_gone: true, busy: true, foreground: "node" }),
  terminal("x5", { name: "zsh", of: "shell", owner: PERSON, attached: true, cwd: "/home/ada", started_at: NOW - 9_000_000, last_output_at: NOW - 7_000_000 }),
  terminal("x6", { name: "a name that is far too long to stand in a row of this list, and a path that is so too", cwd: "/home/ada/projects/with/a/very/deep/tree/of/folders/in/it" }),
  terminal("x7", { ...over, name: "make", exit_code: 0, of: "command" }),
  terminal("x8", { ...over, name: "pytest -x tests/", exit_code: 1, of: "command" }),
  terminal("x9", { ...over, name: "rails server", signal: "SIGTERM", of: "command" }),
  terminal("x10", { ...over, name: "cargo test", lost: true, of: "command" }),
  terminal("x11", { ...over, name: "yes", exit_code: 0, forgotten: true, last_output_at: null }),
];

const commands: readonly Command[] = [
  { line: "git status --short", begin: 10, output: 40, end: 90, exit_code: 0, cwd: "/home/ada/api-server", started_at: NOW - 90_000, duration_ms: 12 },
  { line: "pytest -x tests/", begin: 100, output: 140, end: 500, exit_code: 1, cwd: "/home/ada/api-server", started_at: NOW - 60_000, duration_ms: 4210 },
  { line: "npm run watch", begin: 510, output: 560, end: null, exit_code: null, cwd: "/home/ada/api-server", started_at: NOW - 5000, duration_ms: null },
];

export function detail(view: TerminalView, facts: Partial<TerminalDetail> = {}): TerminalDetail {
  return { ...view, commands: [...commands], at_prompt: false, typed: [], nonce: NONCE, ...facts };
}

const PROMPT = "\x1b[1;32mada@desk\x1b[0m:\x1b[1;34m~/api-server\x1b[0m$ ";

/** A command as a shell with marks prints it. */
function ran(line: string, output: string, exit: number | null): string {
  const mark = (what: string): string => `\x1b]133;${what};nonce=${NONCE}\x07`;
  const begun = `${mark("A")}${PROMPT}${mark("B")}${line}\x1b]633;E;${line};${NONCE}\x07\r\n${mark("C")}${output}`;
  return exit === null ? begun : `${begun}${mark(`D;${exit}`)}`;
}

export const SESSION =
  ran("git status --short", " \x1b[31mM\x1b[0m src/auth.py\r\n\x1b[31m??\x1b[0m notes.md\r\n", 0) +
  ran(
    "pytest -x tests/",
    "\x1b[1mcollected 112 items\x1b[0m\r\n\r\ntests/test_auth.py \x1b[32m......\x1b[0m\x1b[31mF\x1b[0m\r\n\r\n\x1b[31m\x1b[1mFAILED\x1b[0m tests/test_auth.py::test_expiry - assert 401 == 200\r\n\x1b[31m===== 1 failed, 6 passed in 4.21s =====\x1b[0m\r\n",
    1,
  ) +
  ran("ls --color", "\x1b[34msrc\x1b[0m  \x1b[36mlink\x1b[0m  \x1b[32mrun.sh\x1b[0m  README.md  größe.txt 日本語 🎉\r\n", 0) +
  ran("npm run watch", "\x1b[90m[12:03:11]\x1b[0m watching for changes… http://localhost:5173/\r\n", null);

export function prints(view: TerminalView, text: string): AttachFunction {
  return (_, listener) => {
    const timer = setTimeout(() => {
      listener.line?.("up");
      listener.state?.({ state: view, begin: view.first, sizes: false, alternate: false });
      listener.frame({ offset: view.first, bytes: new TextEncoder().encode(text) });
      if (!view.running) listener.line?.("ended");
    });
    return { type: () => (toasts.show("typed"), true), resize: () => {}, restart: () => {}, detach: () => clearTimeout(timer) };
  };
}

/** Five megabytes in a second. */
export function floods(view: TerminalView): AttachFunction {
  return (_, listener) => {
    const bytes = new TextEncoder().encode("a line of output, one of very many, and \x1b[31mred\x1b[0m\r\n".repeat(1600));
    let offset = 0;
    listener.line?.("up");
    listener.state?.({ state: view, begin: 0, sizes: false, alternate: false });
    const timer = setInterval(() => {
      if (offset >= 5_000_000) return clearInterval(timer);
      listener.frame({ offset, bytes });
      offset += bytes.length;
    }, 1000 / 60);
    return { type: () => true, resize: () => {}, restart: () => {}, detach: () => clearInterval(timer) };
  };
}

const did = (what: string) => (): Promise<boolean> => (toasts.show(what), Promise.resolve(true));

export const acts: TerminalActions = {
  take: did("taken over"),
  release: did("released"),
  interrupt: did("interrupted"),
  stop: did("stopped"),
  search: () => Promise.resolve({ matches: [{ line_number: 12_004, offset: 1, text: "a line that was found far above", before: [], after: [] }], more: false }),
  save: did("saved"),
  copyAll: did("copied all"),
  copyOutput: did("copied its output"),
};
