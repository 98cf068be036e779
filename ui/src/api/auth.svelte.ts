/**
 * The bearer of this page, from a one-time code in the URL or from another tab.
 *
 * It is held in memory only: not in storage, a cookie or the URL. Tabs of the same origin pass it on over a
 * BroadcastChannel.
 */
import { ApiError, signIn } from "./client.ts";

type Word = { say: "ask" } | { say: "bearer"; bearer: string };

/** How long a new tab waits for another tab's bearer before it shows the sign-in screen. */
const OTHERS_MS = 250;

class Auth {
  bearer = $state.raw<string | null>(null);
  /** False until the first attempt is over, so that the sign-in screen does not flash. */
  settled = $state(false);
  /** The error of the last sign-in attempt. */
  problem = $state("");
  private refused = "";
  private readonly channel = new BroadcastChannel("handrail");

  start(): void {
    this.channel.onmessage = ({ data }: MessageEvent<Word>) => this.hear(data);
    addEventListener("hashchange", () => void this.useCode());
    void this.begin();
  }

  /** The daemon rejected this bearer. */
  signedOut(why: string): void {
    if (this.bearer) this.refused = this.bearer;
    this.bearer = null;
    this.problem = why;
    this.settled = true;
    this.tell({ say: "ask" });
  }

  private async begin(): Promise<void> {
    if (await this.useCode()) return;
    this.tell({ say: "ask" });
    setTimeout(() => (this.settled = true), OTHERS_MS);
  }

  private async useCode(): Promise<boolean> {
    const code = new URLSearchParams(location.hash.slice(1)).get("code");
    if (!code) return false;
    history.replaceState(history.state, "", location.pathname + location.search);
    try {
      this.accept(await signIn(code));
      this.tell({ say: "bearer", bearer: this.bearer ?? "" });
      return true;
    } catch (error) {
      this.problem = error instanceof ApiError ? error.message : "The daemon does not answer.";
      return false;
    }
  }

  private hear(word: Word): void {
    if (word.say === "ask" && this.bearer) this.tell({ say: "bearer", bearer: this.bearer });
    if (word.say === "bearer" && !this.bearer && word.bearer && word.bearer !== this.refused) this.accept(word.bearer);
  }

  private accept(bearer: string): void {
    this.bearer = bearer;
    this.problem = "";
    this.settled = true;
  }

  private tell(word: Word): void {
    this.channel.postMessage(word);
  }
}

export const auth = new Auth();
