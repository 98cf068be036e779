/** xterm's theme, from the page's CSS variables (style.css). */
import type { ITheme } from "@xterm/xterm";

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

export function xtermTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  const found: ITheme = {
    background: of("--term"),
    foreground: of("--term-ink"),
    cursor: of("--term-cursor"),
    cursorAccent: of("--term"),
    selectionBackground: of("--term-selection"),
    selectionInactiveBackground: of("--term-selection"),
    scrollbarSliderBackground: of("--term-slider"),
    scrollbarSliderHoverBackground: of("--term-slider-hover"),
    scrollbarSliderActiveBackground: of("--term-slider-hover"),
  };
  for (const name of NAMES) {
    found[name] = of(`--ansi-${name}`);
    found[`bright${name[0]?.toUpperCase()}${name.slice(1)}` as "brightRed"] = of(`--ansi-bright-${name}`);
  }
  return found;
}

/** Colours of search matches: the active one and the others. */
export function matchColours(): { matchBackground: string; matchOverviewRuler: string; activeMatchBackground: string; activeMatchColorOverviewRuler: string; activeMatchBorder: string } {
  const of = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ruler = of("--amber-sign");
  return {
    matchBackground: of("--term-match"),
    matchOverviewRuler: ruler,
    activeMatchBackground: of("--term-match-active"),
    activeMatchColorOverviewRuler: ruler,
    activeMatchBorder: ruler,
  };
}
