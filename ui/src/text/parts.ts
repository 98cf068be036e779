/** What a list of parts says of each that is not said above it already; pure. */
import type { Claim, PartRisk, Preview } from "../types.ts";

/** Actions whose resource lies somewhere. */
const PLACED = new Set<Claim["action"]>(["read", "write", "delete", "run"]);

/** A part's own reasons: not what cannot be read of it, which stands with it, nor what its verb and place say. */
export function reasonsOf(claim: Pick<Claim, "action" | "opaque">, risk: PartRisk | undefined): readonly string[] {
  if (!risk || (claim.action !== "run" && risk.level !== "high")) return [];
  return risk.reasons.filter((reason) => reason !== claim.opaque);
}

/** Where it lies, unless a reason says so. */
export function placeOf({ action, inside }: Pick<Claim, "action" | "inside">, reasons: readonly string[]): "in workspace" | "outside workspace" | "" {
  if (!PLACED.has(action) || reasons.some((reason) => reason.includes("workspace"))) return "";
  return inside ? "in workspace" : "outside workspace";
}

/** The only part is the command that is shown whole, and all its reasons are told with it. */
export function repeats(claims: readonly Claim[], preview: Preview | null, reasons: readonly string[], risks: readonly PartRisk[]): boolean {
  const [claim, ...more] = claims;
  if (!claim || more.length || preview?.kind !== "command" || claim.action !== "run" || claim.opaque) return false;
  return claim.resource === preview.command.trim() && (risks[0]?.reasons ?? []).every((reason) => reasons.includes(reason));
}
