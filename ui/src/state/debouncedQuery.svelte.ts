/**
 * What the daemon says to something a person is still changing: asked a moment after the last key, and only the
 * answer to the newest question counts.
 *
 * Owns that moment and that order. It does not know what is asked.
 */
import { ApiError } from "../api/client.ts";

/** Between the last key and the question. */
const TYPING_MS = 180;

export class DebouncedQuery<Question, Answer> {
  answer = $state.raw<Answer | null>(null);
  /** Why there is no answer, in the daemon's words. */
  problem = $state("");
  /** The answer is to what was asked last; false while a newer one is awaited. */
  fresh = $state(false);
  private readonly send: (question: Question) => Promise<Answer>;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private round = 0;

  constructor(send: (question: Question) => Promise<Answer>) {
    this.send = send;
  }

  ask(question: Question, after = TYPING_MS): void {
    this.stop();
    this.timer = setTimeout(() => void this.now(question, this.round), after);
  }

  /** What is under way no longer counts. */
  stop(): void {
    clearTimeout(this.timer);
    this.round++;
    this.fresh = false;
  }

  clear(): void {
    this.stop();
    this.answer = null;
    this.problem = "";
  }

  private async now(question: Question, round: number): Promise<void> {
    const came = await this.send(question).then(
      (answer) => ({ answer, problem: "" }),
      (error: unknown) => ({ answer: null, problem: error instanceof ApiError ? error.message : "The daemon does not answer." }),
    );
    if (round !== this.round) return;
    this.answer = came.answer;
    this.problem = came.problem;
    this.fresh = true;
  }
}
