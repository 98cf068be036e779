/**
 * The bearer of this page: from a one-time code in the URL, from another tab, or by the key of this browser.
 *
 * It is held in memory only: not in storage, a cookie or the URL. Tabs of the same origin pass it on over a
 * BroadcastChannel. After a reload without another tab, the page signs a challenge with its key.
 */
import { browserName, createKey, dropKey, loadKey, signChallenge, storeKey } from "./browserKey.ts";
import { ApiError, requestChallenge, signIn, signInByKey } from "./client.ts";

type Word = { say: "ask" } | { say: "bearer"; bearer: string };

/** How long a new tab waits for another tab's bearer before it uses its key. */
const OTHERS_MS = 150;
const SIGNED_OUT = 401;
const ENDED = "This browser was signed out: on another browser, in a terminal, or because Handrail was stopped.";

/** Whether this page came from the listener for paired devices: that one has TLS, the one of this machine has not. */
export function isDevice(): boolean {
  return location.protocol === "https:";
}

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
    addEventListener("hashchange", () => void this.begin());
    void this.begin();
  }

  /** Pairs this device by a code that its person typed. */
  async pair(code: string): Promise<void> {
    this.problem = "";
    await this.useCode(code);
    if (this.bearer) this.tell({ say: "bearer", bearer: this.bearer });
  }

  /** The daemon rejected this bearer. */
  signedOut(why: string): void {
    const had = this.bearer;
    if (had) this.refused = had;
    this.bearer = null;
    this.settled = false;
    void this.signInAgain(had ? ENDED : why);
  }

  private async begin(): Promise<void> {
    const code = new URLSearchParams(location.hash.slice(1)).get("code");
    if (code) history.replaceState(history.state, "", location.pathname + location.search);
    if (this.bearer) return; // a link that is opened again where somebody is signed in
    if (code) await this.useLink(code);
    else await this.signInAgain("");
  }

  /** A browser that is signed in already does not use the link: a second use would revoke it. */
  private async useLink(code: string): Promise<void> {
    if (!(await this.useKey())) await this.useCode(code);
    if (this.bearer) this.tell({ say: "bearer", bearer: this.bearer });
    this.settled = true;
  }

  private async signInAgain(why: string): Promise<void> {
    this.tell({ say: "ask" });
    await new Promise((resolve) => setTimeout(resolve, OTHERS_MS));
    if (!this.bearer) this.problem = why;
    if (!this.bearer) await this.useKey();
    this.settled = true;
  }

  private async useCode(code: string): Promise<void> {
    const key = await createKey();
    try {
      const signed = await signIn(code, key?.publicKey ?? "", browserName());
      if (key) await storeKey(signed.sign_in, key.privateKey);
      this.accept(signed.bearer);
    } catch (error) {
      this.problem = describe(error);
    }
  }

  /** Sign in by the key of this browser, if it has one that is still good. */
  private async useKey(): Promise<boolean> {
    const stored = await loadKey();
    if (!stored) return false;
    try {
      const nonce = await requestChallenge(stored.signIn);
      const signed = await signInByKey(stored.signIn, nonce, await signChallenge(stored, nonce));
      this.accept(signed.bearer);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === SIGNED_OUT) await dropKey(stored.signIn);
      this.problem ||= describe(error);
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

function describe(error: unknown): string {
  return error instanceof ApiError ? error.message : "The daemon does not answer.";
}

export const auth = new Auth();
