/**
 * All rules, fetched again after each event about rules or folders. Makes, revokes and restores rules, and trusts
 * folders.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { FolderView, RuleBody, RulesView, RuleView } from "../../api/types.ts";
import { showError } from "../../state/showError.ts";
import { toasts } from "../../state/toasts.svelte.ts";
import { ruleBody } from "./ruleText.ts";

export class RuleStore {
  view = $state.raw<RulesView | null>(null);
  problem = $state("");
  /** Shows the rules as they apply in this folder; empty shows all. */
  folder = $state("");
  readonly api: Api;
  private asking: Promise<void> | null = null;
  private again = false;

  constructor(api: Api) {
    this.api = api;
  }

  /** One request at a time: events during a request lead to one more. Resolves after the last one. */
  refresh(): Promise<void> {
    this.again = true;
    return (this.asking ??= this.askAgain());
  }

  /** Shows the rules as they apply in this folder. */
  look(folder: string): void {
    this.folder = folder;
    void this.refresh();
  }

  /** The text of a rule; its name if it is not known (any more). */
  words(name: string): string {
    const found = this.view?.rules.find(({ rule }) => rule.id === name);
    return found && !found.builtin ? found.words.replace(/ in this (project|session)$/, "") : name;
  }

  /** Resolves to an error message, or "". */
  async make(body: RuleBody): Promise<string> {
    const made = await this.add(body);
    return typeof made === "string" ? made : "";
  }

  /** Makes the changed rule in the place of the one that it was, which it revokes. Resolves to an error message, or "". */
  async replace({ rule, words }: RuleView, body: RuleBody): Promise<string> {
    const made = await this.add(body);
    if (typeof made === "string") return made;
    if (made.rule.effect === rule.effect && made.rule.scope === rule.scope) await this.move(made, rule.id);
    const back = ruleBody(rule, Date.now());
    await this.done(() => this.api.revoke(rule.id), () => back && toasts.offer(`Changed: ${words}`, "Bring the old one back", () => void this.make(back)));
    return "";
  }

  async revoke({ rule, words }: RuleView): Promise<void> {
    await this.done(() => this.api.revoke(rule.id), () => {
      const back = ruleBody(rule, Date.now());
      if (back) toasts.offer(`Revoked: ${words}`, "Undo", () => void this.make(back));
      else toasts.show(`Revoked: ${words}`);
    });
  }

  /** Enables or disables a rule. */
  async switch({ rule, words }: RuleView, enabled: boolean): Promise<void> {
    await this.done(
      () => this.api.switchRule(rule.id, enabled),
      () => toasts.offer(`${enabled ? "Enabled" : "Disabled"}: ${words}`, "Undo", () => void this.done(() => this.api.switchRule(rule.id, !enabled), () => undefined)),
    );
  }

  /** Puts a rule before another one of its effect and scope; null puts it behind all. */
  async move({ rule }: RuleView, before: string | null): Promise<void> {
    if (await this.done(() => this.api.moveRule(rule.id, before), () => undefined)) await this.refresh();
  }

  /** Takes back rules that were made with an answer. What they have allowed meanwhile stays allowed. */
  async revokeMade(ids: readonly string[]): Promise<boolean> {
    return this.done(
      () => Promise.all(ids.map((id) => this.api.revoke(id))),
      () => toasts.show(ids.length === 1 ? "Rule revoked. The call itself stays allowed." : "Rules revoked. The call itself stays allowed."),
    );
  }

  async trust({ folder, config }: Pick<FolderView, "folder" | "config">): Promise<boolean> {
    return this.done(() => this.api.trust(folder, config), () => toasts.offer(`Trusted: ${folder}`, "Undo", () => void this.distrust(folder)));
  }

  async distrust(folder: string): Promise<boolean> {
    return this.done(() => this.api.distrust(folder), () => toasts.show(`No longer trusted: ${folder}`));
  }

  /** Resolves to the new rule, to an error message, or to "" if a toast has shown the error. */
  private async add(body: RuleBody): Promise<RuleView | string> {
    try {
      const made = await this.api.makeRule(body);
      toasts.show(`Made: ${made.words}`);
      await this.refresh();
      return made;
    } catch (error) {
      if (error instanceof ApiError && error.status !== 401) return error.message;
      showError(error);
      return "";
    }
  }

  private async done(act: () => Promise<unknown>, then: () => void): Promise<boolean> {
    try {
      await act();
      then();
    } catch (error) {
      showError(error);
      return false;
    } finally {
      void this.refresh();
    }
    return true;
  }

  private async askAgain(): Promise<void> {
    while (this.again) {
      this.again = false;
      await this.ask();
    }
    this.asking = null;
  }

  private async ask(): Promise<void> {
    try {
      this.view = await this.api.rules(this.folder || undefined);
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }
}
