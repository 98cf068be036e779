/** Where the daemon's socket is: the same places as in the Python package (`handrail/paths.py`). */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

const SOCKET_PATH_MAX = process.platform === "darwin" ? 103 : 107;

/** The sockets to try, in order. `home` is that of another Handrail, or empty. */
export function daemonSockets(home: string): string[] {
  const state = stateFolder(home);
  const usual = socketIn(state);
  const named = socketInFile(join(state, "daemon.json"));
  return named && named !== usual ? [usual, named] : [usual];
}

/** The variables with which the `handrail` program finds the same daemon. */
export function daemonEnvironment(home: string): Record<string, string> {
  return home ? { HANDRAIL_HOME: expand(home) } : {};
}

function stateFolder(home: string): string {
  const root = home || process.env.HANDRAIL_HOME;
  if (root) return expand(root);
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support", "Handrail");
  const stated = process.env.XDG_STATE_HOME ?? "";
  return join(isAbsolute(stated) ? stated : join(homedir(), ".local/state"), "handrail");
}

function expand(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : resolve(path);
}

function socketIn(state: string): string {
  const beside = join(state, "daemon.sock");
  if (Buffer.byteLength(beside) <= SOCKET_PATH_MAX) return beside;
  const digest = createHash("sha256").update(state).digest("hex").slice(0, 16);
  return join("/tmp", `handrail-${process.getuid?.() ?? 0}`, digest, "daemon.sock");
}

function socketInFile(path: string): string | null {
  try {
    const { socket } = JSON.parse(readFileSync(path, "utf8")) as { socket?: unknown };
    return typeof socket === "string" ? socket : null;
  } catch {
    return null;
  }
}
