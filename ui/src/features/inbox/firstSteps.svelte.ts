/** The three first steps of a new user. A step that was seen done stays done in this browser. */
import type { RulesView } from "../../api/types.ts";
import type { Model } from "../../state/model.ts";

export type StepId = "connect" | "answer" | "rule";
const STEPS: readonly StepId[] = ["connect", "answer", "rule"];
/** What the demo and the demo agent of a thread call themselves. */
const DEMOS: readonly string[] = ["handrail demo", "demo"];
const KEY = "handrail.first-steps";

/** Whether a client is an agent of the person's own. */
export const isOwnAgent = (client: string): boolean => !DEMOS.includes(client);

/** The steps that this state of the page shows as done; pure. */
export function doneSteps(model: Model, rules: RulesView | null): StepId[] {
  const calls = [...model.calls.values()];
  const answered = calls.some(({ answered_by }) => answered_by?.startsWith("a person")) || [...model.approvals.values()].some(({ by }) => by?.startsWith("a person"));
  return [...(calls.some(({ caller }) => isOwnAgent(caller.client)) ? ["connect" as const] : []), ...(answered ? ["answer" as const] : []), ...(rules?.rules.some(({ removable }) => removable) ? ["rule" as const] : [])];
}

export class FirstSteps {
  /** The steps done so far; all of them once the person has closed the list. */
  done = $state.raw<readonly StepId[]>(stored());

  get over(): boolean {
    return this.done.length === STEPS.length;
  }

  see(found: readonly StepId[]): void {
    const all = STEPS.filter((step) => this.done.includes(step) || found.includes(step));
    if (all.length === this.done.length) return;
    this.done = all;
    try {
      localStorage.setItem(KEY, all.join(","));
    } catch {
      // kept in memory only
    }
  }

  dismiss(): void {
    this.see(STEPS);
  }
}

function stored(): readonly StepId[] {
  try {
    const names = (localStorage.getItem(KEY) ?? "").split(",");
    return STEPS.filter((step) => names.includes(step));
  } catch {
    return [];
  }
}

export const firstSteps = new FirstSteps();
