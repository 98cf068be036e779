/** A debounced query to the daemon: sent a moment after the last key; only the answer to the newest query counts. */
import { ApiError } from "../api/client.ts";

/** Debounce delay. */
const TYPING_MS = 180;

export class DebouncedQuery<Question, Answer> {
  answer = $state.raw<Answer | null>(null);
  /** The error message, if the query failed. */
  problem = $state("");
  /** The answer belongs to the newest query. */
  fresh = $state(false);
  /** Failed requests since the last answer. */
  failures = 0;
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

  /** Discards the query in flight. */
  stop(): void {
    clearTimeout(this.timer);
    this.round++;
    this.fresh = false;
  }

  clear(): void {
    this.stop();
    this.answer = null;
    this.problem = "";
    this.failures = 0;
  }

  private async now(question: Question, round: number): Promise<void> {
    const came = await this.send(question).then(
      (answer) => ({ answer, problem: "" }),
      (error: unknown) => ({ answer: null, problem: error instanceof ApiError ? error.message : "The daemon does not answer." }),
    );
    if (round !== this.round) return;
    this.failures = came.problem ? this.failures + 1 : 0;
    this.answer = came.answer;
    this.problem = came.problem;
    this.fresh = true;
  }
}
