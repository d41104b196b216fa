/* What every page needs: words for the ear, toasts, dialogs, copying, the theme. Behaviour hangs on data attributes:

   data-copy[="id"]        copy the code block around the button, or the text of the element with that id
   data-dialog-open="id"   show the dialog with that id;  data-dialog-close  closes the one around the button
   data-fill="id"          put the button's words into the field with that id
   data-one-line           a text area for one line that grows with it; Enter goes on to the next field
   data-paths="name"       a choice of a folder: the paths of its files are sent with them, under that name
   data-theme-choice       a radio button whose value is system, light or dark
   data-time-zone          a hidden field that tells the server where the browser is
   data-clears="id"        an area with fields; when something in it is typed, the element with that id is emptied
   data-auto-submit        a form that is sent when something in it changes
   data-until="ISO time"   <time> that counts down, in the words of data-in (with %s) and data-now
   data-since="ISO time"   <time> that counts up;  .step[data-news="ISO time"] turns stale after a minute
   data-strip              a list that scrolls, such as a strip on a phone: its current item is scrolled into view
   Words come from #status, which the server fills in the user's language. */
(() => {
  const status = () => document.getElementById("status");
  const word = (name) => status()?.dataset[name] ?? "";

  function say(text) {
    const region = status();
    if (!region) return;
    region.textContent = "";
    setTimeout(() => { region.textContent = text; }, 50);
  }

  function toast(text, { url, word } = {}) {
    const region = document.getElementById("toasts");
    if (!region || [...region.children].some((old) => old.firstElementChild.textContent === text)) return;
    const line = document.createElement("div");
    line.className = "toast";
    line.append(Object.assign(document.createElement("span"), { textContent: text }));
    if (url) line.append(Object.assign(document.createElement("a"), { className: "btn", href: url, textContent: word }));
    region.append(line);
  }

  /* A toast goes after eight seconds, but not while someone reads or reaches for it. */
  setInterval(() => {
    for (const line of document.querySelectorAll("#toasts > .toast")) {
      if (line.matches(":hover, :focus-within")) continue;
      line.dataset.age = Number(line.dataset.age ?? 0) + 1;
      if (line.dataset.age > 8) line.remove();
    }
  }, 1000);

  async function copy(button) {
    const source = button.dataset.copy
      ? document.getElementById(button.dataset.copy)
      : button.closest(".code")?.querySelector("pre");
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.dataset.text ?? source.textContent);
      say(word("copied"));
      button.dataset.done = "";
      setTimeout(() => delete button.dataset.done, 1500);
    } catch {
      toast(word("notCopied"));
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy], [data-fill], [data-dialog-open], [data-dialog-close]");
    if (!button) return;
    if (button.dataset.fill) return fill(document.getElementById(button.dataset.fill), button.textContent);
    if ("copy" in button.dataset) copy(button);
    else if (button.dataset.dialogOpen) openDialog(event, button.dataset.dialogOpen);
    else button.closest("dialog")?.close();
  });

  function fill(field, text) {
    field.value = text.trim();
    field.focus();
  }

  /* Browsers without field-sizing grow a text area by rows. */
  function fit(text) {
    if (CSS.supports("field-sizing", "content")) return;
    text.rows = 1;
    while (text.scrollHeight > text.clientHeight + 2 && text.rows < 12) text.rows += 1;
  }
  document.addEventListener("input", (event) => {
    if ("oneLine" in event.target.dataset) fit(event.target);
  });
  document.addEventListener("keydown", (event) => {
    const text = event.target;
    if (event.key !== "Enter" || event.isComposing || !("oneLine" in text.dataset)) return;
    event.preventDefault();
    const fields = [...text.form.elements];
    fields[fields.indexOf(text) + 1]?.focus();
  });

  /* Without script a link with data-dialog-open leads to a page that does the same. */
  function openDialog(event, id) {
    const dialog = document.getElementById(id);
    if (!dialog) return;
    event.preventDefault();
    for (const sheet of document.querySelectorAll(":popover-open")) sheet.hidePopover();
    dialog.showModal();
  }

  document.addEventListener("change", (event) => {
    const field = event.target;
    if ("themeChoice" in field.dataset) {
      document.documentElement.dataset.theme = field.value;
      document.cookie = `theme=${field.value}; path=/; max-age=31536000; samesite=lax`;
    }
    field.form?.matches("[data-auto-submit]") && field.form.requestSubmit();
  });

  /* What was said of other values does not stand beside these. */
  document.addEventListener("input", (event) => {
    const area = event.target.closest("[data-clears]");
    if (area) document.getElementById(area.dataset.clears)?.replaceChildren();
  });

  document.addEventListener("formdata", (event) => {
    for (const { dataset, files } of event.target.querySelectorAll("[data-paths]")) {
      for (const file of files) event.formData.append(dataset.paths, file.webkitRelativePath || file.name);
    }
  });

  /* Confirmation without window.confirm: the first press asks, the second does. */
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.sure || "asked" in button.dataset) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const before = [...button.childNodes]; // with its icon, and what only screen readers hear
    button.dataset.asked = "";
    button.replaceChildren(button.dataset.sure);
    say(button.dataset.sure);
    setTimeout(() => {
      if (!("asked" in button.dataset)) return;
      button.replaceChildren(...before);
      delete button.dataset.asked;
    }, 6000);
  }, true);

  function centre(strip) {
    const [whole, item] = [strip, strip.querySelector("[aria-current]")].map((each) => each?.getBoundingClientRect());
    if (!item) return;
    strip.scrollLeft += item.left + item.width / 2 - whole.left - whole.width / 2;
    if (item.top < whole.top || item.bottom > whole.bottom) strip.scrollTop += item.top - whole.top - whole.height / 2;
  }

  const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

  function tick() {
    const now = Date.now();
    for (const clock of document.querySelectorAll("time[data-since]")) {
      clock.textContent = minutes(Math.max(0, Math.floor((now - Date.parse(clock.dataset.since)) / 1000)));
    }
    for (const clock of document.querySelectorAll("time[data-until]")) {
      const seconds = Math.ceil((Date.parse(clock.dataset.until) - now) / 1000);
      clock.textContent = seconds > 0 ? clock.dataset.in.replace("%s", minutes(seconds)) : clock.dataset.now;
    }
    for (const step of document.querySelectorAll(".step[data-news][data-state=running]")) {
      step.toggleAttribute("data-stale", now - Date.parse(step.dataset.news) > 60_000);
    }
  }
  setInterval(tick, 1000);
  document.addEventListener("DOMContentLoaded", () => {
    tick();
    document.querySelectorAll("[data-one-line]").forEach(fit);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const field of document.querySelectorAll("[data-time-zone]")) field.value = zone;
    for (const strip of document.querySelectorAll("[data-strip]")) centre(strip);
  });
  document.addEventListener("htmx:after:swap", tick);

  /* A failed request leaves the page as it is and says so. */
  document.addEventListener("htmx:response:error", (event) => {
    if (event.detail.ctx.response.status >= 500) toast(word("failed"));
  });
  document.addEventListener("htmx:error", (event) => {
    if (event.detail.ctx) toast(word("unsent"));
  });

  window.waymark = { say, toast, word, fit };
})();
