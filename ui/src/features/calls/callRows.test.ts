import assert from "node:assert/strict";
import { test } from "node:test";

import type { CallView } from "../../api/types.ts";
import { dayText, foldTitle, type TableLine, tableLines } from "./callRows.ts";

const NOON = new Date(2026, 10, 18, 12).getTime();
const DAY = 86_400_000;

function call(id: string, facts: Partial<CallView> = {}): CallView {
  return { id, tool: "read_file", title: `Read ${id}`, status: "done", started_at: NOON, caller: { key: "k" }, exit_code: null, signal: null, thread: null, ...facts } as CallView;
}

function shown(lines: readonly TableLine[]): string {
  return lines.map((line) => (line.kind === "call" ? line.call.id : line.kind === "fold" ? `${foldTitle(line.calls)} ×${line.calls.length}` : dayText(line.at, NOON))).join(" | ");
}

const CLOSED = { before: undefined, grouped: true, isOpen: () => false };

test("repeats of a tool are one line, which can be opened", () => {
  const calls = ["1", "2", "3", "4"].map((id) => call(id));
  assert.equal(shown(tableLines([...calls, call("5", { tool: "write_file" })], CLOSED)), "Today | Read ×4 | 5");
  assert.equal(shown(tableLines(calls, { ...CLOSED, isOpen: (fold) => fold === "fold-4" })), "Today | Read ×4 | 1 | 2 | 3 | 4");
  assert.equal(shown(tableLines(calls.slice(1), CLOSED)), "Today | 2 | 3 | 4");
});

test("only what is alike and over is folded: a command repeats only itself, an open call nothing", () => {
  const commands = ["1", "2", "3", "4"].map((id) => call(id, { tool: "execute_command" }));
  assert.equal(shown(tableLines(commands, CLOSED)), "Today | 1 | 2 | 3 | 4");
  const same = commands.map((one) => ({ ...one, title: "make test" }));
  assert.equal(shown(tableLines(same, CLOSED)), "Today | make test ×4");
  assert.equal(shown(tableLines(same.map((one, at) => ({ ...one, exit_code: at % 2 })), CLOSED)), "Today | 1 | 2 | 3 | 4");
  assert.equal(shown(tableLines(same.map((one) => ({ ...one, status: "running" as const })), CLOSED)), "Today | 1 | 2 | 3 | 4");
});

test("days are headings, also across pages; another order has none", () => {
  const calls = [call("1"), call("2", { started_at: NOON - DAY }), call("3", { started_at: NOON - DAY }), call("4", { started_at: NOON - 3 * DAY })];
  assert.equal(shown(tableLines(calls, CLOSED)), "Today | 1 | Yesterday | 2 | 3 | Sunday 15 November | 4");
  assert.equal(shown(tableLines(calls.slice(2), { ...CLOSED, before: calls[1] })), "3 | Sunday 15 November | 4");
  assert.equal(shown(tableLines(calls, { ...CLOSED, grouped: false })), "1 | 2 | 3 | 4");
});
