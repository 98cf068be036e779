/** Fixtures: answers that go nowhere, and replies of a daemon. Never loaded by the page. */
import type { EditView, Json, ProposedView, RuleBody } from "../api/types.ts";
import { type AnswerContext, type AnswerMode, Answers } from "../features/approvals/answers.svelte.ts";
import { rulePattern } from "../features/rules/ruleText.ts";
import type { InputGuard } from "../state/inputGuard.svelte.ts";
import type { TrackedApproval } from "../state/model.ts";
import { toasts } from "../state/toasts.svelte.ts";

export function answering(approval: TrackedApproval | null, guard: InputGuard, mode: AnswerMode = "choose"): Answers {
  const context: AnswerContext = {
    guard,
    question: () => approval,
    known: () => true,
    send: (_, body) => toasts.show(`${body.answer}: ${JSON.stringify(body.rule ?? body.input ?? body.reason ?? "")}`),
    api: {
      propose,
      edit: (_, { input }) => Promise.resolve(edited(approval, input ?? {})),
      proposal: () => Promise.reject(new Error("The gallery proposes nothing.")),
      output: () => Promise.reject(new Error("The gallery has no output.")),
      outputPage: () => Promise.reject(new Error("The gallery has no output.")),
      typeInto: () => Promise.reject(new Error("The gallery has no terminals.")),
    },
  };
  const answers = new Answers(context);
  answers.mode = mode;
  return answers;
}

export function propose(rule: RuleBody): Promise<ProposedView> {
  const pattern = rulePattern(rule);
  const problem = pattern.trim() ? (pattern.includes("sudo") ? "A rule cannot begin with `sudo`: name what it runs." : "") : "A rule needs a pattern.";
  return Promise.resolve({ problem, words: `${rule.effect ?? "allow"} \`${pattern} …\``, prompts: 57, decided: 41, calls: 200, matches: 14, examples: [`${pattern} origin main`] });
}

function edited(approval: TrackedApproval | null, input: Json): EditView {
  const command = String(input.command ?? "");
  const high = /rm |push/.test(command);
  return {
    digest: "1".repeat(64),
    effect: "ask",
    why: "no rule covers it",
    verdicts: [{ claim: 0, effect: "ask", rule: "default policy", why: "no rule covers it" }],
    risk: high ? "high" : "medium",
    reasons: high ? ["publishes to a remote"] : ["runs a command"],
    risks: [{ level: high ? "high" : "medium", reasons: high ? ["publishes to a remote"] : ["runs a command"] }],
    claims: [{ action: "run", resource: command, inside: true, protected: false, words: command.split(" "), opaque: "", calm: false, reads: false, server: "", arguments: [] }],
    preview: approval?.preview ?? null,
    tells: `The person changed command to: ${command}`,
  };
}
