/* What comes up elsewhere, and telling the browser of it.

   #looking             a form: while somebody has the page before their eyes its address is posted every half minute,
                        so that they are told of nothing that they see. The answer says how many things wait, which
                        stands in the title and on the icon, and what came up on other pages, which is toasted once in
                        all windows, and as one when it is much. Its data-open is the word for the way there. With the
                        first post a browser that is told says by which address it is pushed to, and the answer whether
                        the server knows another, so that the service worker renews it.
   form[data-push-key]  tells this browser; shown where that is possible, else #push-unfit. #push-denied says no.
   form[data-push-off]  ends that */
(() => {
  const EVERY = 30_000, KEPT = 50, APART = 3, TOLD = "waymark-told";
  const title = document.title;

  function told() {
    try { return JSON.parse(localStorage.getItem(TOLD)) ?? []; } catch { return []; }
  }

  function isNew(id) {
    const before = told();
    if (before.includes(id)) return false;
    try { localStorage.setItem(TOLD, JSON.stringify([...before, id].slice(-KEPT))); } catch { /* told in each window */ }
    return true;
  }

  async function worker() {
    return await navigator.serviceWorker?.getRegistration("/");
  }

  let compared = false;

  async function withPush(body) {
    if (compared) return;
    compared = true;
    const { pushManager } = await worker() ?? {}; // there is none where this was never switched on
    if (await pushManager?.permissionState({ userVisibleOnly: true }) !== "granted") return;
    body.set("push", (await pushManager.getSubscription())?.endpoint ?? "");
  }

  async function look() {
    const form = document.getElementById("looking");
    if (!form || document.hidden || !navigator.onLine) return;
    const body = new FormData(form);
    body.set("path", location.pathname);
    await withPush(body).catch(() => {});
    const answer = await fetch(form.action, { method: "POST", body, redirect: "error" }).catch(() => null);
    if (!answer?.ok) return;
    const { waiting, notices, together, renew } = await answer.json();
    if (renew) (await worker())?.active?.postMessage("renew");
    document.title = waiting ? `(${waiting}) ${title}` : title;
    navigator.setAppBadge?.(waiting).catch(() => {});
    const fresh = notices.filter(({ id }) => isNew(id));
    for (const { text, url } of fresh.length > APART ? [together] : fresh) {
      waymark.toast(text, { url, word: form.dataset.open });
    }
  }

  addEventListener("DOMContentLoaded", look);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("agents-changed", look);
  setInterval(look, EVERY);

  const form = () => document.querySelector("form[data-push-key]");
  const show = (id) => { document.getElementById(id).hidden = false; };

  document.addEventListener("DOMContentLoaded", () => {
    if (!form()) return;
    if ("serviceWorker" in navigator && "PushManager" in window && "Notification" in window) form().hidden = false;
    else show("push-unfit");
  });

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));

  async function subscribed(key) {
    if (await Notification.requestPermission() !== "granted") return null;
    await navigator.serviceWorker.register("/sw.js");
    const { pushManager } = await navigator.serviceWorker.ready;
    await (await pushManager.getSubscription())?.unsubscribe(); // it may be for another key
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  }

  async function add(to) {
    const found = await subscribed(to.dataset.pushKey).catch(() => null);
    if (!found) return show("push-denied");
    to.elements.subscription.value = JSON.stringify(found);
    to.submit();
  }

  async function unsubscribed() {
    await (await (await worker())?.pushManager?.getSubscription())?.unsubscribe();
  }

  async function remove(from) {
    await unsubscribed().catch(() => {}); // the server tells this browser nothing any more, whatever it says
    from.submit();
  }

  document.addEventListener("submit", (event) => {
    const what = event.target.matches("[data-push-key]") ? add : event.target.matches("[data-push-off]") ? remove : null;
    if (!what) return;
    event.preventDefault();
    what(event.target);
  });
})();
