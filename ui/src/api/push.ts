/**
 * Push messages of a paired device: the service worker, and the browser's subscription.
 *
 * The worker is registered on paired devices only; it stores nothing of Handrail (public/sw.js).
 */
import { isDevice } from "./auth.svelte.ts";
import type { Api } from "./client.ts";

type Policy = { createScriptURL(url: string): string };
type Policies = { createPolicy(name: string, rules: Policy): Policy };

/** Registers the worker; `open` is called with the path of a notification that was tapped. */
export async function startWorker(open: (path: string) => void): Promise<void> {
  if (!isDevice() || !("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<{ open?: string }>) => {
    if (data.open) open(data.open);
  });
  const policies = (window as { trustedTypes?: Policies }).trustedTypes;
  const url = policies ? policies.createPolicy("handrail-worker", { createScriptURL: () => "/sw.js" }).createScriptURL("") : "/sw.js";
  await navigator.serviceWorker.register(url, { scope: "/" }).catch(() => undefined); // a browser that does not trust the CA
}

export function canPush(): boolean {
  return isDevice() && "serviceWorker" in navigator && "PushManager" in window;
}

/** Subscribes this device; throws if the browser or its person refuses. */
export async function subscribePush(api: Api): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser does not allow notifications for this page. Allow them in its site settings, then try again.");
  const worker = await navigator.serviceWorker.ready;
  const { key } = await api.pushKey();
  await (await worker.pushManager.getSubscription())?.unsubscribe(); // it may be for another key
  const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint = "", keys } = made.toJSON();
  await api.subscribePush({ endpoint, p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" });
}

export async function unsubscribePush(api: Api): Promise<void> {
  const worker = await navigator.serviceWorker.ready;
  await (await worker.pushManager.getSubscription())?.unsubscribe();
  await api.unsubscribePush();
}
