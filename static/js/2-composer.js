/* The composer: <form class="composer" data-composer="thread id"> with <textarea name="content"> and a hidden
   client_message_id. Enter sends, Shift Enter breaks the line. What was typed is kept in this browser until the server
   has taken it, and a second try carries the same id, so that it cannot be stored twice. */
(() => {
  const key = (form) => `draft:${form.dataset.composer}`;
  const parts = (form) => [form.querySelector("textarea"), form.querySelector("[name=client_message_id]")];
  const hasFiles = (form) => Boolean(form.querySelector("input[type=file]")?.files.length);
  const composerOf = (target) => target?.closest?.("form[data-composer]");

  /* randomUUID exists only in secure contexts; a phone in the same network uses plain http. */
  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  function load(form) {
    if ("ready" in form.dataset) return;
    form.dataset.ready = "";
    const [text, id] = parts(form);
    const draft = read(form);
    if (draft && !text.value) text.value = draft.text;
    if (id) id.value = draft?.id || id.value || uuid();
    waymark.fit(text);
  }

  function read(form) {
    try { return JSON.parse(localStorage.getItem(key(form))); } catch { return null; }
  }

  function save(form) {
    const [text, id] = parts(form);
    try {
      if (text.value) localStorage.setItem(key(form), JSON.stringify({ text: text.value, id: id?.value }));
      else localStorage.removeItem(key(form));
    } catch { /* storage may be off or full: the draft lives in the page only */ }
  }

  function reset(form) {
    const [text, id] = parts(form);
    text.value = "";
    if (id) id.value = uuid();
    save(form);
    waymark.fit(text);
  }

  document.addEventListener("input", (event) => {
    const form = composerOf(event.target);
    if (!form) return;
    save(form);
    waymark.fit(event.target);
  });

  document.addEventListener("keydown", (event) => {
    const form = composerOf(event.target);
    if (form && event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea")) {
      event.preventDefault();
      if (event.target.value.trim() || hasFiles(form)) form.requestSubmit();
    }
    if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], :popover-open")) {
      document.querySelector("[data-stop]:not(:disabled)")?.click();
    }
  });

  document.addEventListener("submit", (event) => {
    const form = composerOf(event.target);
    if (!form) return;
    if (!parts(form)[0].value.trim() && !hasFiles(form)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    if (!form.matches("[hx-post]")) save(form);
  }, true);

  /* Fired only for a request that leaves: one that is dropped, because another is on its way, has sent nothing. */
  document.addEventListener("htmx:before:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (form) form.dataset.sent = parts(form)[0].value;
  });

  /* Only what was sent is cleared: words typed while it was on its way stay. */
  document.addEventListener("htmx:after:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (!form || event.detail.ctx.response.status >= 300) return;
    const [text] = parts(form);
    const rest = text.value === form.dataset.sent ? "" : text.value;
    reset(form);
    if (rest) { text.value = rest; save(form); }
  });

  /* A form that went by a full page load comes back empty; the address says that the message was taken. */
  function settle() {
    const taken = new URLSearchParams(location.search).get("sent");
    for (const form of document.querySelectorAll("form[data-composer]")) {
      if (taken && read(form)?.id === taken) localStorage.removeItem(key(form));
      load(form);
    }
  }
  document.addEventListener("DOMContentLoaded", settle);
  document.addEventListener("htmx:after:swap", settle);
  if (document.readyState !== "loading") settle();
})();
