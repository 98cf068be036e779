/** The buttons at the end of the top bar; pure. */
export type BarTool = "alerts" | "sign-ins" | "settings" | "theme" | "keys";

/** An editor has notifications, a theme and a sign-in of its own. A narrow bar has room for few buttons. */
export function barTools(inEditor: boolean, narrow: boolean): readonly BarTool[] {
  const shown = { alerts: !inEditor, "sign-ins": !inEditor && !narrow, settings: true, theme: !inEditor && !narrow, keys: !narrow };
  return (Object.keys(shown) as BarTool[]).filter((tool) => shown[tool]);
}
