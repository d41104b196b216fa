{% load static %}/* Shows notices when no page is open, says so, and leads to what they are about. Nothing is kept or served offline. */
const icon = "{% static 'icon-192.png' %}";
const ALOUD = 3, BURST = 60_000;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const notice = event.data.json();
  event.waitUntil(show(notice));
});

async function show({ id, title, body, url }) {
  const now = Date.now();
  const shown = await self.registration.getNotifications();
  const silent = shown.filter(({ data }) => data?.at > now - BURST).length >= ALOUD; // the device was off for a while
  await self.registration.showNotification(title, { body, icon, silent, tag: id || "trial", data: { url, at: now } });
  if (id) await fetch(`/notices/${id}/shown`, { method: "POST" }).catch(() => {});
}

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event.newSubscription)));
self.addEventListener("message", (event) => event.waitUntil(renew())); // a page has learnt that the server needs it

async function renew(renewed) {
  const address = "{% url 'push_renew' %}";
  const known = await fetch(address, { redirect: "error" });
  if (!known.ok) return; // this browser is told nothing
  const { key, token } = await known.json();
  const subscription = JSON.stringify(renewed ?? await subscribed(key));
  const body = new URLSearchParams({ subscription });
  await fetch(address, { method: "POST", body, headers: { "X-CSRFToken": token }, redirect: "error" });
}

async function subscribed(key) {
  const { pushManager } = self.registration;
  await (await pushManager.getSubscription())?.unsubscribe(); // it may be dead, or for another key
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = new URL(event.notification.data.url, location.origin);
  event.waitUntil(self.clients.openWindow(address.origin === location.origin ? address.href : "/"));
});
