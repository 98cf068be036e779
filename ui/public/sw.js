/**
 * The service worker of a paired device: push notifications, and a page that says that Handrail is not reachable.
 *
 * It caches that page and the icon, and nothing else: calls, threads and output are never stored on the device.
 */
const CACHE = "handrail-offline-1";
const OFFLINE = "/offline.html";
const ICON = "/icon-192.png";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([OFFLINE, ICON])).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const drop = (name) => name !== CACHE && caches.delete(name);
  event.waitUntil(caches.keys().then((names) => Promise.all(names.map(drop))).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") event.respondWith(fetch(event.request).catch(() => caches.match(OFFLINE)));
});

self.addEventListener("push", (event) => event.waitUntil(show(event.data ? event.data.json() : {})));

/** A browser withdraws a subscription whose messages show nothing, so one is shown in any case. */
async function show({ title = "A call needs you", path = "/" }) {
  await self.registration.showNotification(title, { tag: "handrail", renotify: true, icon: ICON, badge: ICON, data: { path } });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.path ?? "/"));
});

async function open(path) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((one) => new URL(one.url).origin === self.location.origin);
  if (!page) return self.clients.openWindow(path);
  page.postMessage({ open: path });
  return page.focus();
}
