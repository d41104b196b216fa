/* The live connection: <div id="live" hx-ws:connect="/ws/…" data-last-seq="…">. Frames are {seq, content, swap: "none"}
   and are in order; a frame that was seen already is dropped. After each connection the page says where it stands and
   the server sends what is missing, or {"type": "reload"} when it cannot. {"type": "wire", "up": false} says that the
   server itself is cut off from what happens, until the same says true. Close code 4401 means signed out.
   Once it is back, `live-again` has the page read what changed elsewhere meanwhile, of which nobody was told.
   While the connection is away, or cut off, for more than 20 s, elements with an id and data-poll are read again every 5 s: from its
   address, which answers with partials, or when it is empty from the page itself. */
(() => {
  const SIGNED_OUT = 4401, AWAY = 20_000, EVERY = 5_000;
  const source = () => document.querySelector("[data-last-seq]");
  let connected = false;
  let lostAt = null;
  let timer = null;

  function show(state) {
    for (const pill of document.querySelectorAll(".live")) {
      pill.hidden = false;
      pill.dataset.state = state;
      pill.textContent = waymark.word(state);
    }
  }

  /* Event ids are "milliseconds-number" or plain numbers; both grow. */
  function isNewer(seq, last) {
    if (!last) return true;
    const [a, b = 0] = String(seq).split("-").map(Number);
    const [c, d = 0] = String(last).split("-").map(Number);
    return a > c || (a === c && b > d);
  }

  function parse(data) {
    try { return JSON.parse(data); } catch { return null; }
  }

  function found() {
    connected = true;
    if (lostAt) document.dispatchEvent(new Event("live-again"));
    lostAt = null;
    clearInterval(timer);
    timer = null;
    show("online");
  }

  function lost() {
    connected = false;
    lostAt ??= Date.now();
    timer ??= setInterval(poll, EVERY);
    show(navigator.onLine ? "reconnecting" : "offline");
  }

  document.addEventListener("htmx:ws:after:connection", (event) => {
    found();
    const after = source()?.dataset.lastSeq ?? "";
    event.detail.connection.socket.send(JSON.stringify({ type: "hello", after }));
  });

  document.addEventListener("htmx:ws:close", (event) => {
    const { code, reason } = event.detail;
    connected = false;
    if (code === SIGNED_OUT) location.reload();
    else if (reason !== "removed") lost();
  });

  addEventListener("offline", () => show("offline"));
  addEventListener("online", () => show(lostAt ? "reconnecting" : "online"));

  document.addEventListener("htmx:ws:before:message:incoming", (event) => {
    const frame = parse(event.detail.message.data);
    if (frame?.type === "reload") {
      event.preventDefault();
      location.reload();
    } else if (frame?.type === "wire") {
      event.preventDefault();
      frame.up ? found() : lost();
    } else if (frame?.seq && !isNewer(frame.seq, source()?.dataset.lastSeq)) {
      event.preventDefault();
    }
  });

  document.addEventListener("htmx:ws:after:message:incoming", (event) => {
    const frame = parse(event.detail.message.data);
    if (frame?.seq && source()) source().dataset.lastSeq = frame.seq;
    if (frame?.say) waymark.say(frame.say);
  });

  /* While the socket writes the page, the answer to a press of a button must not overwrite what is newer. */
  document.addEventListener("htmx:config:request", (event) => {
    if (connected) event.detail.ctx.request.headers["X-Live"] = "1";
  });

  function poll() {
    if (!lostAt || Date.now() - lostAt < AWAY || document.hidden || !navigator.onLine) return;
    for (const part of document.querySelectorAll("[data-poll][id]")) {
      const whole = { source: part, target: part, select: `#${part.id}`, swap: "outerMorph" };
      if (part.dataset.poll) htmx.ajax("GET", part.dataset.poll, { source: part, target: part, swap: "none" });
      else htmx.ajax("GET", location.pathname + location.search, whole);
    }
  }
})();
