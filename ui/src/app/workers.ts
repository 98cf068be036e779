/** The agents that are at work: who calls, from which folder, and what is open; pure. */
import type { ThreadView } from "../api/types.ts";
import { workspaceName } from "../lib/callText.ts";
import { pluralize } from "../lib/duration.ts";
import type { TrackedCall } from "../state/model.ts";

export interface Worker {
  /** The thread, or the key of the client. */
  readonly key: string;
  readonly name: string;
  readonly note: string;
  readonly thread: string | null;
  /** Its newest open call. */
  readonly call: string | null;
}

/** One entry for each thread with an operation and each client with an open call, unless it is gone. */
export function workers(open: readonly TrackedCall[], threads: readonly ThreadView[]): Worker[] {
  const groups = new Map<string, TrackedCall[]>();
  for (const call of open.filter(({ client_gone }) => !client_gone)) {
    const key = call.caller.thread ?? call.caller.key;
    groups.set(key, [...(groups.get(key) ?? []), call]);
  }
  for (const { id, operation } of threads) if (operation && !groups.has(id)) groups.set(id, []);
  return [...groups].map(([key, calls]) => describe(key, calls, threads.find(({ id }) => id === key)));
}

function describe(key: string, calls: readonly TrackedCall[], thread: ThreadView | undefined): Worker {
  const [first] = calls;
  const waiting = calls.filter(({ status }) => status === "waiting").length;
  const where = first ? workspaceName(first.caller) : (thread?.workspace?.split("/").at(-1) ?? "no folder");
  const doing = [...(waiting ? [`${waiting} waiting for you`] : []), ...(calls.length - waiting ? [`${pluralize(calls.length - waiting, "call")} running`] : []), ...(calls.length ? [] : ["thinking"])];
  return {
    key,
    name: thread ? `${thread.agent}: ${thread.title || "a thread"}` : (first?.caller.client ?? "an agent"),
    note: [where, ...doing].join(" · "),
    thread: thread?.id ?? first?.caller.thread ?? null,
    call: calls.at(-1)?.id ?? null,
  };
}
