{% load static %}/* Shows notices when no page is open, says so, and leads to what they are about. Nothing is kept or served offline. */
const icon = "{% static 'icon-192.png' %}";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const notice = event.data.json();
  event.waitUntil(show(notice));
});

async function show({ id, title, body, url }) {
  await self.registration.showNotification(title, { body, icon, tag: id || "trial", data: { url } });
  if (id) await fetch(`/notices/${id}/shown`, { method: "POST" }).catch(() => {});
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = new URL(event.notification.data.url, location.origin);
  event.waitUntil(self.clients.openWindow(address.origin === location.origin ? address.href : "/"));
});
