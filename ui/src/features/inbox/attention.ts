/**
 * Draws attention to open questions: title count, favicon dot, sound, notification when hidden.
 *
 * Never takes the focus. Bursts are coalesced into one message.
 */
import { headline } from "../../lib/callText.ts";
import { inputRequestText } from "../../lib/terminalText.ts";
import { visibleText } from "../../lib/visibleText.ts";
import type { Model, TrackedApproval, TrackedTerminal } from "../../state/model.ts";
import { type AlertKind, settings } from "../../state/settings.svelte.ts";
import { clientNews, type ClientState } from "../clients/clientText.ts";
import { openApprovals, terminalsNeedingInput } from "./sections.ts";

/** Needs within this time are announced together. */
const BURST_MS = 400;

/** A question or a terminal that waits for the person. */
export interface Need {
  readonly id: string;
  readonly kind: AlertKind;
  /** Built lazily: hundreds may be open, and every event collects them. */
  says(): string;
}

export function collectNeeds(model: Model): Need[] {
  return [...openApprovals(model).map((approval) => ({ id: approval.id, kind: "approval" as const, says: () => said(approval) })), ...terminalsNeedingInput(model).map(toBeTyped)];
}

export class Attention {
  private known: Set<string> | null = null;
  private fresh: Need[] = [];
  private clients = new Map<string, ClientState>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly announce: (text: string) => void;

  constructor(announce: (text: string) => void) {
    this.announce = announce;
  }

  /** Announces needs that are new; those of the first call are not. */
  see(open: readonly Need[], live: boolean): void {
    document.title = open.length ? `(${open.length}) Handrail` : "Handrail";
    paintIcon(open.length > 0, live);
    const fresh = this.known ? open.filter(({ id }) => !this.known?.has(id)) : [];
    this.known = new Set(open.map(({ id }) => id));
    if (fresh.length === 0) return;
    this.fresh.push(...fresh);
    this.timer ??= setTimeout(() => this.tell(), BURST_MS);
  }

  /** Announces clients that want attention, and those that end a long turn. */
  seeClients(states: readonly ClientState[], now: number): void {
    const known = this.clients;
    this.clients = new Map(states.map((state) => [state.client.key, state]));
    for (const state of states) {
      const text = clientNews(known.get(state.client.key), state, now);
      if (text) this.speak(text, ["client"]);
    }
  }

  private tell(): void {
    this.timer = undefined;
    const fresh = this.fresh.filter(({ id }) => this.known?.has(id));
    this.fresh = [];
    if (fresh.length === 0) return;
    const text = fresh.length > 1 ? `${fresh.length} calls need you` : (fresh[0]?.says() ?? "");
    this.speak(text, fresh.map(({ kind }) => kind));
  }

  private speak(text: string, kinds: readonly AlertKind[]): void {
    this.announce(text);
    if (!kinds.some((kind) => settings.alerts(kind, new Date().getHours()))) return;
    if (settings.sound) playChime();
    if (settings.notify && document.hidden) showNotification(text);
  }
}

function said(first: TrackedApproval): string {
  const what = first.preview?.kind === "command" ? headline({ title: first.title }, first) : first.title;
  return `Needs you, ${first.risk} risk: ${visibleText(what).slice(0, 120)}`;
}

function toBeTyped({ id, name, asks }: TrackedTerminal): Need {
  return { id: `${id} ${asks?.since ?? 0}`, kind: "input", says: () => `Needs you: ${visibleText(name).slice(0, 60)} ${asks ? inputRequestText(asks) : ""}` };
}

export function showNotification(text: string): void {
  try {
    const note = new Notification("Handrail", { body: text, tag: "handrail" });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  } catch {
    // some phones have the Notification API, but not for pages
  }
}

/** Called only from the click that turns notifications on. */
export async function requestNotifications(): Promise<boolean> {
  if (!("Notification" in window)) return false;
  return (await Notification.requestPermission()) === "granted";
}

/** Two soft notes. */
export function playChime(): void {
  const audio = new AudioContext();
  [523.25, 783.99].forEach((pitch, at) => {
    const from = audio.currentTime + at * 0.12;
    const tone = audio.createOscillator();
    const gain = audio.createGain();
    tone.frequency.value = pitch;
    gain.gain.setValueAtTime(0, from);
    gain.gain.linearRampToValueAtTime(0.08, from + 0.02);
    gain.gain.exponentialRampToValueAtTime(0.0001, from + 0.5);
    tone.connect(gain).connect(audio.destination);
    tone.start(from);
    tone.stop(from + 0.55);
  });
  setTimeout(() => void audio.close(), 1000);
}

/** The favicon: a rail; with an amber dot when something waits, grey when the daemon is down. */
function paintIcon(needed: boolean, live: boolean): void {
  const rail = live ? "#8a87f0" : "#8d8d99";
  const dot = needed ? `<circle cx="24" cy="8" r="7" fill="#f0a020"/>` : "";
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 25 28 13M9 22v7M20 17v12" fill="none" stroke="${rail}" stroke-width="4" stroke-linecap="round"/>${dot}</svg>`;
  let link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!link) {
    link = document.createElement("link");
    link.rel = "icon";
    document.head.append(link);
  }
  const href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  if (link.href !== href) link.href = href;
}
