/**
 * Who the page is: the bearer, from a one-time code in the address or from another tab.
 *
 * The bearer lives in this object and nowhere else: no storage, no cookie, no address. Other tabs of the
 * same origin ask for it on a channel. It does not know what the bearer is used for.
 */
import { ApiError, signIn } from "./client.ts";

type Word = { say: "ask" } | { say: "bearer"; bearer: string };

/** How long a new tab waits for another one's word before it asks the person. */
const OTHERS_MS = 250;

class Auth {
  bearer = $state.raw<string | null>(null);
  /** Undecided at first, so that the sign-in screen does not flash by. */
  settled = $state(false);
  /** Why there is no bearer, when there was a try. */
  problem = $state("");
  private refused = "";
  private readonly channel = new BroadcastChannel("handrail");

  start(): void {
    this.channel.onmessage = ({ data }: MessageEvent<Word>) => this.hear(data);
    addEventListener("hashchange", () => void this.useCode());
    void this.begin();
  }

  /** The daemon does not know this bearer (any more). */
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
