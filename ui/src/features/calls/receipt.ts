/** A receipt as sentences: signals sent, processes stopped or left, output kept; pure. */
import type { Receipt } from "../../api/types.ts";
import { durationText, pluralize, sizeText } from "../../lib/duration.ts";

/** Names per sentence; more are counted. */
const NAMED = 12;

export function receiptLines(receipt: Receipt, runs: boolean): string[] {
  return [
    work(receipt, runs),
    ...signals(receipt),
    ...processes("Stopped", receipt.processes_stopped),
    ...processes("Left alive", receipt.processes_left),
    ...(receipt.bytes_kept ? [`${sizeText(receipt.bytes_kept)} of output kept.`] : []),
    ...(receipt.files_changed.length ? [`Files changed: ${listed(receipt.files_changed)}.`] : []),
  ];
}

/** The terminal's current state overrides the receipt, which was written when the call ended. */
function work({ stopped }: Receipt, runs: boolean): string {
  if (runs) return "Its process still runs in its terminal.";
  return stopped ? "All of its work has ended." : "Its work has not ended yet.";
}

function signals({ signals: sent }: Receipt): string[] {
  if (sent.length === 0) return [];
  const said = sent.map(({ signal, after_ms }) => (after_ms < 1 ? `${signal} at once` : `${signal} after ${durationText(after_ms)}`));
  return [`Sent ${listed(said)}.`];
}

function processes(verb: string, seen: Receipt["processes_stopped"]): string[] {
  if (seen.length === 0) return [];
  const names = seen.map(({ name, pid }) => `${name} (${pid})`);
  return [`${verb} ${pluralize(seen.length, "process")}: ${listed(names)}.`];
}

function listed(names: readonly string[]): string {
  if (names.length <= NAMED) return names.join(", ");
  return `${names.slice(0, NAMED).join(", ")} and ${names.length - NAMED} more`;
}
