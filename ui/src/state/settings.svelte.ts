/** Settings of this browser: theme, sound, notifications. Kept in localStorage; nothing secret. */

export type Theme = "system" | "light" | "dark";
/** What a sound or a notification is about: a question, a prompt of a command, a client that ended or wants attention. */
export type AlertKind = "approval" | "input" | "client";
const KINDS: readonly AlertKind[] = ["approval", "input", "client"];
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const LETTERS: readonly string[] = ["9", "10", "11", "12", "13", "14", "15", "16", "17", "18"];

class Settings {
  theme = $state<Theme>(stored("theme", THEMES, "system"));
  sound = $state(stored("sound", ["off", "soft"], "off") === "soft");
  notify = $state(stored("notify", ["off", "on"], "off") === "on");
  reader = $state(stored("reader", ["off", "on"], "off") === "on");
  /** After a decision of this tab: open the next question, or stay. */
  advance = $state(stored("after-decision", ["next", "stay"], "next") === "next");
  /** Kinds of news that make no sound and no notification. */
  muted = $state<readonly AlertKind[]>(storedList("muted", KINDS));
  /** Hours without sound and notifications, as `22-7`; empty for none. */
  quiet = $state(storedHours());
  /** Wrap long lines of a command's output. */
  wrap = $state(stored("wrap", ["off", "on"], "on") === "on");
  /** The share of the list beside an open call, and of the old side of a diff. */
  listShare = $state(storedShare("list-share", 5 / 12));
  diffShare = $state(storedShare("diff-share", 0.5));
  /** The open call takes the whole width; until the page is loaded again. */
  fullWidth = $state(false);
  split = $state(stored("diff", ["unified", "split"], "unified") === "split");

  /** Font size of terminals on a phone. */
  letter = $state(Number(stored("letter", LETTERS, "12")));

  constructor() {
    this.paint();
  }

  nextTheme(): void {
    this.theme = THEMES[(THEMES.indexOf(this.theme) + 1) % THEMES.length] ?? "system";
    keep("theme", this.theme);
    this.paint();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    keep("theme", theme);
    this.paint();
  }

  setSound(on: boolean): void {
    this.sound = on;
    keep("sound", on ? "soft" : "off");
  }

  setNotify(on: boolean): void {
    this.notify = on;
    keep("notify", on ? "on" : "off");
  }

  /** Screen reader mode of terminals. */
  setReader(on: boolean): void {
    this.reader = on;
    keep("reader", on ? "on" : "off");
  }

  setAdvance(on: boolean): void {
    this.advance = on;
    keep("after-decision", on ? "next" : "stay");
  }

  setMuted(kind: AlertKind, muted: boolean): void {
    this.muted = muted ? [...new Set([...this.muted, kind])] : this.muted.filter((one) => one !== kind);
    keep("muted", this.muted.join(","));
  }

  setQuiet(hours: string): void {
    this.quiet = hours;
    keep("quiet", hours);
  }

  /** Whether news of this kind may make a sound and a notification at this hour. */
  alerts(kind: AlertKind, hour: number): boolean {
    return !this.muted.includes(kind) && !isQuiet(this.quiet, hour);
  }

  setWrap(on: boolean): void {
    this.wrap = on;
    keep("wrap", on ? "on" : "off");
  }

  setSplit(on: boolean): void {
    this.split = on;
    keep("diff", on ? "split" : "unified");
  }

  setListShare(share: number): void {
    this.listShare = share;
    keep("list-share", String(share));
  }

  setDiffShare(share: number): void {
    this.diffShare = share;
    keep("diff-share", String(share));
  }

  setLetter(letter: number): void {
    if (!LETTERS.includes(String(letter))) return;
    this.letter = letter;
    keep("letter", String(letter));
  }

  /** Uses the theme of the program around the page, from now on. */
  follow(theme: "light" | "dark"): void {
    this.theme = theme;
    this.paint();
  }

  private paint(): void {
    document.documentElement.dataset.theme = this.theme;
  }
}

/** Whether an hour (0 to 23) is within hours such as `22-7`, which may go over midnight. */
export function isQuiet(hours: string, hour: number): boolean {
  const [from, to] = hours.split("-").map(Number);
  if (from === undefined || to === undefined || from === to) return false;
  return from < to ? hour >= from && hour < to : hour >= from || hour < to;
}

function storedShare(name: string, otherwise: number): number {
  try {
    const share = Number(localStorage.getItem(`handrail.${name}`) ?? otherwise);
    return share >= 0.1 && share <= 0.9 ? share : otherwise;
  } catch {
    return otherwise;
  }
}

function storedHours(): string {
  try {
    const value = localStorage.getItem("handrail.quiet") ?? "";
    return /^\d{1,2}-\d{1,2}$/.test(value) ? value : "";
  } catch {
    return "";
  }
}

function storedList<T extends string>(name: string, allowed: readonly T[]): readonly T[] {
  try {
    const values = (localStorage.getItem(`handrail.${name}`) ?? "").split(",");
    return allowed.filter((one) => values.includes(one));
  } catch {
    return [];
  }
}

function stored<T extends string>(name: string, allowed: readonly T[], otherwise: T): T {
  try {
    const value = localStorage.getItem(`handrail.${name}`);
    return allowed.find((one) => one === value) ?? otherwise;
  } catch {
    return otherwise; // storage may be disabled
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`handrail.${name}`, value);
  } catch {
    // kept in memory only
  }
}

export const settings = new Settings();
