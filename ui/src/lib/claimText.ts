/** What a list of parts says of each that is not said above it already; pure. */
import type { Claim, PartRisk, Preview } from "../api/types.ts";

/** Actions whose resource lies somewhere. */
const PLACED = new Set<Claim["action"]>(["read", "write", "delete", "run"]);

/** A part's own reasons: not what cannot be read of it, which stands with it, nor what its verb and place say. */
export function claimReasons(claim: Pick<Claim, "action" | "opaque">, risk: PartRisk | undefined): readonly string[] {
  if (!risk || (claim.action !== "run" && risk.level !== "high")) return [];
  return risk.reasons.filter((reason) => reason !== claim.opaque);
}

/** Reasons in one line: of several parts that cannot be read only how many, for each says it with its own words. */
export function reasonsText(reasons: readonly string[], claims: readonly Pick<Claim, "opaque">[]): string {
  const opaque = claims.map((claim) => claim.opaque).filter(Boolean);
  const unread = reasons.filter((reason) => opaque.includes(reason));
  if (unread.length < 2) return reasons.join(" · ");
  return [...reasons.filter((reason) => !unread.includes(reason)), `${opaque.length} parts cannot be read with certainty`].join(" · ");
}

/** Where it lies, unless a reason says so; what cannot be read may lie anywhere. */
export function claimPlace({ action, inside, opaque }: Pick<Claim, "action" | "inside" | "opaque">, reasons: readonly string[]): "in workspace" | "outside workspace" | "" {
  if (!PLACED.has(action) || (opaque && inside) || reasons.some((reason) => reason.includes("workspace"))) return "";
  return inside ? "in workspace" : "outside workspace";
}

/** The only part is the command that is shown whole, and all its reasons are told with it. */
export function repeatsPreview(claims: readonly Claim[], preview: Preview | null, reasons: readonly string[], risks: readonly PartRisk[]): boolean {
  const [claim, ...more] = claims;
  if (!claim || more.length || preview?.kind !== "command" || claim.action !== "run" || claim.opaque) return false;
  return claim.resource === preview.command.trim() && (risks[0]?.reasons ?? []).every((reason) => reasons.includes(reason));
}
