/**
 * What waits for a person and what runs now: read anew after each event that can have changed it.
 *
 * Follows the live socket from the daemon's own sequence number. After a reconnect everything is read again.
 */
import * as vscode from "vscode";
import type WebSocket from "ws";

import type { ApprovalView, CallDetail, CallView, Entry, LiveEntries, State } from "../../../ui/src/api/types.ts";
import { previewOf } from "../../../ui/src/lib/callText.ts";
import type { Daemon } from "./daemon.ts";

/** Events that come together are read once. */
const DEBOUNCE_MS = 40;
const RETRY_MS = 1000;
/** Changed files of calls that this window remembers. */
const MOST_CHANGES = 500;

/** A file that a call changed while this window was open. */
export interface WrittenFile {
  readonly call: string;
  readonly path: string;
  /** The lines that it wrote, counted from 0. */
  readonly lines: readonly number[];
}

export class Inbox implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onChange = this.changes.event;
  private readonly writes = new vscode.EventEmitter<void>();
  readonly onWrite = this.writes.event;
  /** Open approvals, oldest first. */
  approvals: readonly ApprovalView[] = [];
  /** Running calls, oldest first. */
  running: readonly CallView[] = [];
  /** The newest last. */
  written: readonly WrittenFile[] = [];
  private socket: WebSocket | null = null;
  private timer: NodeJS.Timeout | undefined;
  private reading = false;
  /** All agents are paused. */
  paused = false;
  private stale = false;
  private epoch = 0;
  private readonly held: vscode.Disposable;

  constructor(
    private readonly daemon: Daemon,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.held = daemon.onChange(() => void this.restart());
  }

  dispose(): void {
    this.held.dispose();
    this.epoch += 1;
    clearTimeout(this.timer);
    this.socket?.close();
    this.changes.dispose();
    this.writes.dispose();
  }

  /** The highest risk that waits; null if nothing does. */
  get risk(): ApprovalView["risk"] | null {
    return (["high", "medium", "low"] as const).find((level) => this.approvals.some(({ risk }) => risk === level)) ?? null;
  }

  /** Forgets a call whose changes were undone. */
  forget(call: string): void {
    this.written = this.written.filter((file) => file.call !== call);
    this.writes.fire();
  }

  private async restart(): Promise<void> {
    const mine = ++this.epoch;
    this.socket?.close();
    this.socket = null;
    if (this.daemon.standing.kind !== "live") return this.set([], []);
    try {
      const state = await this.daemon.call<State>("GET", "/api/state");
      if (mine !== this.epoch) return;
      this.paused = state.pause.since !== null;
      this.set(state.approvals, state.calls.filter(({ status }) => status === "running"));
      this.follow(mine, state.seq);
    } catch (error) {
      this.log.warn(`the state could not be read: ${String(error)}`);
      this.again(mine);
    }
  }

  private follow(mine: number, after: number): void {
    const socket = (this.socket = this.daemon.socket(`/api/live?after=${after}`));
    socket.on("message", (data: Buffer) => {
      if (mine === this.epoch) (JSON.parse(data.toString("utf8")) as LiveEntries).entries.forEach((entry) => this.hear(entry));
    });
    socket.on("error", () => undefined); // a close follows
    socket.on("close", () => mine === this.epoch && this.again(mine));
  }

  private again(mine: number): void {
    setTimeout(() => mine === this.epoch && void this.restart(), RETRY_MS);
  }

  private hear({ event }: Entry): void {
    if (event.kind === "AgentsPaused" || event.kind === "AgentsResumed") {
      this.paused = event.kind === "AgentsPaused";
      this.changes.fire();
    }
    if (event.kind.startsWith("Approval") || event.kind.startsWith("Call")) this.refreshSoon();
    if (event.kind === "CallSettled" && event.ending === "done" && this.daemon.approves) void this.noteWrites(event.call);
  }

  private refreshSoon(): void {
    this.stale = true;
    if (!this.timer && !this.reading) this.timer = setTimeout(() => void this.refresh(), DEBOUNCE_MS);
  }

  private async refresh(): Promise<void> {
    const mine = this.epoch;
    this.timer = undefined;
    this.stale = false;
    this.reading = true;
    try {
      const [approvals, running] = await Promise.all([
        this.daemon.call<ApprovalView[]>("GET", "/api/approvals?open=true"),
        this.daemon.call<CallView[]>("GET", "/api/calls?status=running"),
      ]);
      if (mine === this.epoch) this.set(approvals, [...running].reverse());
    } catch (error) {
      this.log.debug(String(error)); // the socket closes too, and everything is read again
    } finally {
      this.reading = false;
      if (this.stale) this.refreshSoon();
    }
  }

  private set(approvals: readonly ApprovalView[], running: readonly CallView[]): void {
    this.approvals = approvals;
    this.running = running;
    this.changes.fire();
  }

  private async noteWrites(id: string): Promise<void> {
    const detail = await this.daemon.call<CallDetail>("GET", `/api/calls/${encodeURIComponent(id)}`).catch(() => null);
    if (!detail?.files.length) return;
    const preview = previewOf(detail, undefined);
    const lines = preview?.kind === "diff" ? addedLines(preview.diff) : [];
    const files = detail.files.map(({ path }) => ({ call: id, path, lines: detail.files.length === 1 ? lines : [] }));
    this.written = [...this.written, ...files].slice(-MOST_CHANGES);
    this.writes.fire();
  }
}

/** The numbers of lines that a unified diff adds, in the new file, counted from 0. */
export function addedLines(diff: string): number[] {
  const added: number[] = [];
  let at = -1;
  for (const line of diff.split("\n")) {
    const hunk = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line);
    if (hunk) at = Number(hunk[1]) - 1;
    else if (at < 0 || line.startsWith("\\")) continue;
    else if (line.startsWith("+")) added.push(at++);
    else if (!line.startsWith("-")) at += 1;
  }
  return added;
}
