/** What each key does on this page; the same table is shown by `?`. */
import { flushSync } from "svelte";

import type { Desk } from "../features/inbox/inboxController.svelte.ts";
import type { Key } from "./keyboard.ts";
import { isOpen } from "../state/model.ts";
import { route } from "../state/route.svelte.ts";
import { settings } from "../state/settings.svelte.ts";

export function pageKeys(desk: Desk): Key[] {
  return [
    { key: "j", does: "next row", act: () => move(desk, 1), repeats: true },
    { key: "k", does: "previous row", act: () => move(desk, -1), repeats: true },
    { key: "a", does: "allow once (low and medium risk)", act: () => seen(desk, () => desk.answers.allow(false)) },
    { key: "Shift+A", does: "allow once, high risk too", act: () => seen(desk, () => desk.answers.allow(true)) },
    { key: "s", does: "allow for the session (low and medium risk)", act: () => seen(desk, () => desk.answers.session(false)) },
    { key: "Shift+S", does: "allow for the session, high risk too", act: () => seen(desk, () => desk.answers.session(true)) },
    { key: "r", does: "always allow…: make a rule", act: () => seen(desk, () => desk.answers.begin("rule")) },
    { key: "d", does: "deny", act: () => seen(desk, () => desk.answers.mode === "choose" && desk.answers.deny()) },
    { key: "Shift+D", does: "deny and tell the agent…", act: () => seen(desk, () => desk.answers.begin("tell")) },
    { key: "e", does: "edit what it runs with", act: () => seen(desk, () => desk.approval?.reviewable || desk.answers.begin("edit")) },
    { key: "w", does: "why am I asked?", act: () => seen(desk, () => (desk.why = !desk.why)) },
    { key: "c", does: "cancel the call", act: () => onOpen(desk, (id) => desk.cancel(id)) },
    { key: "f", does: "complete the call…", act: () => onOpen(desk, () => (desk.completing = true)) },
    { key: "v", does: "diff: unified or side by side", act: () => settings.setSplit(!settings.split) },
    { key: "g i", does: "go to the inbox", act: () => route.go("inbox") },
    { key: "g c", does: "go to all calls", act: () => route.go("calls") },
    { key: "g t", does: "go to the threads", act: () => route.go("threads") },
    { key: "n", does: "begin a new thread", act: begin },
    { key: "i", does: "write in the open thread", act: () => document.querySelector<HTMLElement>("[data-composer]")?.focus() },
    { key: "g x", does: "go to the terminals", act: () => route.go("terminals") },
    { key: "g r", does: "go to the rules", act: () => route.go("rules") },
    { key: "/", does: "filter", act: filter },
    { key: "Escape", does: "back", act: () => back(desk) },
    { key: "?", does: "these keys", act: () => (desk.help = true) },
  ];
}

/** On a narrow page the whole of it is opened first: nothing is decided from a list row. */
function seen(desk: Desk, act: () => void): void {
  if (desk.selected) act();
  else {
    const row = document.activeElement?.closest<HTMLElement>("[data-call]")?.dataset.call;
    if (row) route.open(row);
  }
}

function onOpen(desk: Desk, act: (id: string) => void): void {
  seen(desk, () => {
    const call = desk.selected ? desk.call(desk.selected) : undefined;
    if (call && isOpen(call) && desk.arming.ready) act(call.id);
  });
}

/** Beside a review the key is the review's, also in the moment in which it appears and hears no key yet. */
function begin(): void {
  if (!document.querySelector("[data-review]")) route.talk("new");
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-list] :is([data-call], [data-terminal], [data-thread], [data-hit]) > a")];
}

function move(desk: Desk, step: number): void {
  const all = rows();
  const things = all.map((row) => row.parentElement?.dataset ?? {});
  const focused = all.indexOf(document.activeElement as HTMLElement);
  const open = route.place.thread ?? desk.selected ?? route.place.terminal ?? "";
  const at = focused >= 0 ? focused : things.findIndex(({ call, terminal, thread }) => (call ?? terminal ?? thread) === open);
  const to = Math.max(0, Math.min(all.length - 1, at + step));
  all[to]?.focus();
  all[to]?.scrollIntoView({ block: "nearest" });
  if (!desk.wide.current) return;
  const { call, terminal, thread, hit } = things[to] ?? {};
  if (hit !== undefined) return; // a place among what was found opens when it is chosen
  if (call) route.open(call);
  else if (thread) route.talk(thread);
  else if (terminal && route.place.view === "terminals") route.watch(terminal);
}

function filter(): void {
  if (matchMedia("(max-width: 639px)").matches && route.place.view !== "terminals" && route.place.view !== "threads") route.go("calls");
  flushSync(); // the field must have the focus before the next key comes: a fast hand does not wait for a frame
  document.getElementById("filter")?.focus();
}

function back(desk: Desk): void {
  if (desk.answers.mode !== "choose") return desk.answers.begin("choose");
  if (document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLTextAreaElement) return document.activeElement.blur();
  const from = route.place.call ?? route.place.terminal ?? route.place.thread;
  if (!from) return;
  route.close();
  if (!desk.wide.current) requestAnimationFrame(() => ["row", "terminal", "thread"].map((kind) => document.getElementById(`${kind}-${from}`)).find(Boolean)?.focus());
}
