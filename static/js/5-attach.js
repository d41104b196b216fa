/* Files in the composer: chosen, pasted, or dropped anywhere on the page. <input type="file" name="files"> is in
   the form; <ul data-attached> shows what will be sent, with its limits and words in data attributes, and
   <template data-attached-item> is one of its lines. What was chosen stays until the server has taken it. */
(() => {
  const SIDE = 96;
  const composerOf = (target) => target?.closest?.("form[data-composer]");
  const inputOf = (form) => form?.querySelector("input[type=file]");
  const listOf = (form) => form.querySelector("[data-attached]");
  const chosen = new WeakMap();
  const filesOf = (form) => chosen.get(form) ?? [];

  /* As Django says it, so that a file has one size before and after it was sent. */
  function size(bytes) {
    const steps = [["byte", "long", 0], ["kilobyte", "short", 1], ["megabyte", "short", 1]];
    const step = bytes < 1024 ? 0 : bytes < 1024 ** 2 ? 1 : 2, [unit, unitDisplay, digits] = steps[step];
    const style = { style: "unit", unit, unitDisplay, minimumFractionDigits: digits, maximumFractionDigits: digits };
    const words = new Intl.NumberFormat(document.documentElement.lang || "en", style).format(bytes / 1024 ** step);
    return words.replace("kB", "KB");
  }

  function set(form, files) {
    const data = new DataTransfer();
    files.forEach((file) => data.items.add(file));
    chosen.set(form, files);
    inputOf(form).files = data.files;
    form.querySelector("textarea").required = !files.length;
    draw(form, files);
  }

  function draw(form, files) {
    const list = listOf(form), item = form.querySelector("[data-attached-item]");
    list.replaceChildren(...files.map((file) => line(form, list, item.content.firstElementChild.cloneNode(true), file)));
    list.hidden = !files.length;
  }

  function line(form, list, row, file) {
    const [name, bytes] = row.querySelectorAll("span"), remove = row.querySelector("button");
    name.textContent = file.name;
    bytes.textContent = size(file.size);
    remove.setAttribute("aria-label", list.dataset.remove.replace("%s", file.name));
    remove.addEventListener("click", () => {
      set(form, filesOf(form).filter((other) => other !== file));
      form.querySelector("textarea").focus();
    });
    if (/^image\/(png|jpeg|webp|gif)$/.test(file.type)) preview(row, file);
    return row;
  }

  async function preview(row, file) {
    try {
      const picture = await createImageBitmap(file, { resizeHeight: SIDE });
      const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
      canvas.getContext("2d").drawImage(picture, 0, 0);
      row.querySelector(".icon").replaceWith(canvas);
    } catch { /* not a picture after all: its line says enough */ }
  }

  /* The first reason why these files cannot be sent, in words; empty when there is none. */
  function problem(list, files) {
    const { most, bytes, bytesTogether, many, large, largeTogether } = list.dataset;
    const over = files.find((file) => file.size > Number(bytes));
    if (files.length > Number(most)) return many.replace("%n", most);
    if (over) return large.replace("%s", () => over.name).replace("%n", size(Number(bytes)));
    const sum = files.reduce((total, file) => total + file.size, 0);
    return sum > Number(bytesTogether) ? largeTogether.replace("%n", size(Number(bytesTogether))) : "";
  }

  function add(form, more) {
    const files = [...filesOf(form), ...more], why = problem(listOf(form), files);
    if (why) waymark.toast(why);
    set(form, why ? filesOf(form) : files);
    form.querySelector("textarea").focus();
  }

  document.addEventListener("change", (event) => {
    const form = composerOf(event.target);
    if (form && event.target === inputOf(form)) add(form, event.target.files);
  });

  /* What is copied from a table or a letter is text with a picture of it, and the text is meant; a copied file has only
     its name as text, a copied picture only HTML. */
  document.addEventListener("paste", (event) => {
    const form = composerOf(event.target), { files, types } = event.clipboardData;
    if (!inputOf(form) || !files.length || ["text/plain", "text/html"].every((type) => types.includes(type))) return;
    event.preventDefault();
    add(form, files);
  });

  const target = (event) => {
    const form = document.querySelector(".thread form[data-composer]");
    return inputOf(form) && event.dataTransfer.types.includes("Files") ? form : null;
  };
  const mark = (form) => document.querySelectorAll("form[data-composer]")
    .forEach((each) => each.toggleAttribute("data-drop", each === form));

  document.addEventListener("dragover", (event) => {
    const form = target(event);
    if (form) event.preventDefault();
    mark(form);
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(null); });
  document.addEventListener("drop", (event) => {
    const form = target(event);
    mark(null);
    if (!form) return;
    event.preventDefault();
    add(form, event.dataTransfer.files);
  });

  /* A browser that comes back to a page may have kept what was chosen on it. */
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-composer]")) {
      if (inputOf(form)?.files.length && !filesOf(form).length) add(form, inputOf(form).files);
    }
  });

  /* fetch() cannot say how far an upload has come. */
  function uploading(bar) {
    return (address, request) => new Promise((resolve, reject) => {
      const call = new XMLHttpRequest();
      call.open(request.method, address);
      for (const [name, value] of Object.entries(request.headers)) call.setRequestHeader(name, value);
      call.upload.onprogress = (event) => { bar.value = event.loaded / event.total; };
      call.onload = () => {
        const lines = call.getAllResponseHeaders().trim().split(/\r?\n/);
        const headers = lines.map((line) => /^([^:]+): ?(.*)$/.exec(line)?.slice(1)).filter(Boolean);
        resolve(new Response(call.responseText || null, { status: call.status, headers }));
      };
      call.onerror = () => reject(new TypeError("the connection was lost"));
      call.onabort = () => reject(new DOMException("stopped", "AbortError"));
      request.signal?.addEventListener("abort", () => call.abort());
      call.send(request.body);
    });
  }

  document.addEventListener("htmx:before:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement), files = form ? filesOf(form) : [];
    if (!files.length) return;
    const bar = Object.assign(document.createElement("progress"), { value: 0, ariaLabel: listOf(form).dataset.sending });
    listOf(form).append(bar);
    form.attaching = files;
    event.detail.ctx.fetch = uploading(bar);
  });

  /* Only what was sent is cleared, and only when it was taken. */
  document.addEventListener("htmx:finally:request", (event) => {
    const form = composerOf(event.detail.ctx.sourceElement);
    if (!form?.attaching) return;
    const taken = event.detail.ctx.response?.status < 300 ? form.attaching : [];
    delete form.attaching;
    set(form, filesOf(form).filter((file) => !taken.includes(file)));
  });
})();
