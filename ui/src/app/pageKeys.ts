/** The shortcuts of the page; `?` lists this table. */
import { flushSync } from "svelte";

import type { InboxController } from "../features/inbox/inboxController.svelte.ts";
import { isOpen } from "../state/model.ts";
import { route } from "../state/route.svelte.ts";
import { settings } from "../state/settings.svelte.ts";
import type { KeyBinding } from "./keyboard.ts";

export function pageKeys(controller: InboxController): KeyBinding[] {
  return [
    { key: "j", does: "next row", act: () => move(controller, 1), repeats: true },
    { key: "k", does: "previous row", act: () => move(controller, -1), repeats: true },
    { key: "a", does: "allow once (low and medium risk)", act: () => seen(controller, () => controller.answers.allow(false)) },
    { key: "Shift+A", does: "allow once, high risk too", act: () => seen(controller, () => controller.answers.allow(true)) },
    { key: "s", does: "allow for the session (low and medium risk)", act: () => seen(controller, () => controller.answers.session(false)) },
    { key: "Shift+S", does: "allow for the session, high risk too", act: () => seen(controller, () => controller.answers.session(true)) },
    { key: "r", does: "always allow…: make a rule", act: () => seen(controller, () => controller.answers.begin("rule")) },
    { key: "d", does: "deny", act: () => seen(controller, () => controller.answers.mode === "choose" && controller.answers.deny()) },
    { key: "Shift+D", does: "deny and tell the agent…", act: () => seen(controller, () => controller.answers.begin("tell")) },
    { key: "e", does: "edit what it runs with", act: () => seen(controller, () => controller.approval?.reviewable || controller.answers.begin("edit")) },
    { key: "w", does: "why am I asked?", act: () => seen(controller, () => (controller.whyOpen = !controller.whyOpen)) },
    { key: "c", does: "cancel the call", act: () => onOpen(controller, (id) => controller.cancel(id)) },
    { key: "f", does: "complete the call…", act: () => onOpen(controller, () => (controller.completing = true)) },
    { key: "x", does: "select the row, in all calls", act: () => controller.toggleSelection?.() },
    { key: "v", does: "diff: unified or side by side", act: () => settings.setSplit(!settings.split) },
    { key: "z", does: "open call: full width", act: () => (settings.fullWidth = !settings.fullWidth) },
    { key: "g i", does: "go to the inbox", act: () => route.go("inbox") },
    { key: "g c", does: "go to all calls", act: () => route.go("calls") },
    { key: "g t", does: "go to the threads", act: () => route.go("threads") },
    { key: "n", does: "begin a new thread", act: begin },
    { key: "i", does: "write in the open thread", act: () => document.querySelector<HTMLElement>("[data-composer]")?.focus() },
    { key: "g x", does: "go to the terminals", act: () => route.go("terminals") },
    { key: "g r", does: "go to the rules", act: () => route.go("rules") },
    { key: "g m", does: "go to the MCP servers", act: () => route.go("servers") },
    { key: "g s", does: "go to the settings", act: () => route.go("settings") },
    { key: "/", does: "search", act: filter },
    { key: "Escape", does: "close what is open on top", act: () => back(controller) },
    { key: "?", does: "these keys", act: () => (controller.helpOpen = true) },
  ];
}

/**
 * Acts on the open call only, and only if it is in sight. On a narrow page the detail is opened first: nothing is
 * decided from a list row. In a thread the card is scrolled into view first.
 */
function seen(controller: InboxController, act: () => void): void {
  const card = route.place.thread ? document.querySelector(`[data-card="${controller.selected}"]`) : null;
  if (controller.selected && card && !isInSight(card)) {
    card.scrollIntoView({ block: "nearest" });
    controller.guard.arm();
  } else if (controller.selected) act();
  else {
    const row = document.activeElement?.closest<HTMLElement>("[data-call]")?.dataset.call;
    if (row) route.openCall(row);
  }
}

function isInSight(card: Element): boolean {
  const { top, bottom } = card.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

/** Opens the next question, as `j` does on a card that needs nobody any more. */
export function goNext(controller: InboxController): void {
  const next = controller.nextQuestion;
  if (!next) return;
  route.openCall(next);
  flushSync();
  const row = document.getElementById(`row-${next}`);
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function onOpen(controller: InboxController, act: (id: string) => void): void {
  seen(controller, () => {
    const call = controller.selected ? controller.call(controller.selected) : undefined;
    if (call && isOpen(call) && controller.guard.ready) act(call.id);
  });
}

/** A review has its own `n`, and may not listen yet while it mounts. */
function begin(): void {
  if (!document.querySelector("[data-review]")) route.openThread("new");
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-list] :is([data-call], [data-terminal], [data-thread], [data-hit]) > a")];
}

function move(controller: InboxController, step: number): void {
  if (step > 0 && controller.wide.current && controller.nextQuestion) return goNext(controller);
  if (controller.moveRing) return controller.moveRing(step);
  const all = rows();
  const things = all.map((row) => row.parentElement?.dataset ?? {});
  const focused = all.indexOf(document.activeElement as HTMLElement);
  const open = route.place.thread ?? controller.selected ?? route.place.terminal ?? "";
  const at = focused >= 0 && !(controller.wide.current && things[focused]?.call) ? focused : things.findIndex(({ call, terminal, thread }) => (call ?? terminal ?? thread) === open);
  const to = Math.max(0, Math.min(all.length - 1, at + step));
  all[to]?.focus();
  all[to]?.scrollIntoView({ block: "nearest" });
  if (!controller.wide.current) return;
  const { call, terminal, thread, hit } = things[to] ?? {};
  if (hit !== undefined) return; // a search result opens as soon as it is selected
  if (call) route.openCall(call);
  else if (thread) route.openThread(thread);
  else if (terminal && route.place.view === "terminals") route.openTerminal(terminal);
}

function filter(): void {
  if (matchMedia("(max-width: 639px)").matches && route.place.view === "inbox") route.go("calls");
  flushSync(); // focus the field before the next key event: fast typing does not wait for a frame
  document.getElementById("filter")?.focus();
}

function back(controller: InboxController): void {
  if (controller.answers.mode !== "choose") return controller.answers.begin("choose");
  if (document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLTextAreaElement) return document.activeElement.blur();
  if (controller.whyOpen) return void (controller.whyOpen = false);
  const from = route.place.call ?? route.place.terminal ?? route.place.thread;
  if (!from || controller.wide.current) return; // on a wide page nothing covers the list: what is shown stays
  route.close();
  requestAnimationFrame(() => ["row", "terminal", "thread"].map((kind) => document.getElementById(`${kind}-${from}`)).find(Boolean)?.focus());
}
