/** Texts of a list of claims, without repeating the summary above it; pure. */
import type { Claim, PartRisk, Preview, Verdict } from "../api/types.ts";

/** Actions on a path. */
const PLACED = new Set<Claim["action"]>(["read", "write", "delete", "run"]);

/** The reasons of one claim, without those that its row already shows. */
export function claimReasons(claim: Pick<Claim, "action" | "opaque">, risk: PartRisk | undefined): readonly string[] {
  if (!risk || (claim.action !== "run" && risk.level !== "high")) return [];
  return risk.reasons.filter((reason) => reason !== claim.opaque);
}

/** Reasons in one line; of several parts that cannot be analysed, the first reason is told and the others are counted. */
export function reasonsText(reasons: readonly string[], claims: readonly Pick<Claim, "opaque">[]): string {
  const [, ...more] = reasons.filter((reason) => claims.some((claim) => claim.opaque === reason));
  if (!more.length) return reasons.join(" · ");
  const others = more.length === 1 ? "1 more part" : `${more.length} more parts`;
  return [...reasons.filter((reason) => !more.includes(reason)), `${others} cannot be analysed`].join(" · ");
}

/** The place of a claim, unless a reason states it or it is unknown: an MCP server may work anywhere. */
export function claimPlace({ action, inside, opaque, server }: Pick<Claim, "action" | "inside" | "opaque" | "server">, reasons: readonly string[]): "in workspace" | "outside workspace" | "" {
  if (!PLACED.has(action) || ((opaque || server) && inside) || reasons.some((reason) => reason.includes("workspace"))) return "";
  return inside ? "in workspace" : "outside workspace";
}

/** A row of the list: claims that read the same are one, with the highest risk and all reasons. */
export interface ClaimRow {
  /** The numbers of the claims, from 0. */
  readonly claims: readonly number[];
  readonly claim: Claim;
  readonly risk: PartRisk | undefined;
  readonly verdict: Verdict | undefined;
}

const LEVELS = ["low", "medium", "high"] as const;

export function claimRows(claims: readonly Claim[], risks: readonly PartRisk[], verdicts: readonly Verdict[]): ClaimRow[] {
  const rows = new Map<string, ClaimRow>();
  claims.forEach((claim, at) => {
    const verdict = verdicts.find((one) => one.claim === at);
    const key = JSON.stringify([claim.action, claim.resource, claim.opaque, claim.inside, claim.protected, verdict?.effect, verdict?.rule]);
    const before = rows.get(key);
    rows.set(key, { claims: [...(before?.claims ?? []), at], claim, risk: joinRisks(before?.risk, risks[at]), verdict });
  });
  return [...rows.values()];
}

function joinRisks(a: PartRisk | undefined, b: PartRisk | undefined): PartRisk | undefined {
  if (!a || !b) return a ?? b;
  const level = LEVELS.indexOf(a.level) > LEVELS.indexOf(b.level) ? a.level : b.level;
  return { level, reasons: [...new Set([...a.reasons, ...b.reasons])] };
}

/** Whether the only claim is the previewed command, and all its reasons are shown with it. */
export function repeatsPreview(claims: readonly Claim[], preview: Preview | null, reasons: readonly string[], risks: readonly PartRisk[]): boolean {
  const [claim, ...more] = claims;
  if (!claim || more.length || preview?.kind !== "command" || claim.action !== "run" || claim.opaque) return false;
  return claim.resource === preview.command.trim() && (risks[0]?.reasons ?? []).every((reason) => reasons.includes(reason));
}
