/** Settings of this browser: theme, sound, notifications. Kept in localStorage; nothing secret. */

export type Theme = "system" | "light" | "dark";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const LETTERS: readonly string[] = ["9", "10", "11", "12", "13", "14", "15", "16", "17", "18"];

class Settings {
  theme = $state<Theme>(stored("theme", THEMES, "system"));
  sound = $state(stored("sound", ["off", "soft"], "off") === "soft");
  notify = $state(stored("notify", ["off", "on"], "off") === "on");
  reader = $state(stored("reader", ["off", "on"], "off") === "on");
  /** After a decision of this tab: open the next question, or stay. */
  advance = $state(stored("after-decision", ["next", "stay"], "next") === "next");
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

  setSplit(on: boolean): void {
    this.split = on;
    keep("diff", on ? "split" : "unified");
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
