/* Reading position: an element with data-stick is a growing conversation in the page's own scroll. The view follows
   its end only when the reader was within 80 px of it; else the button .to-end counts what is new. */
(() => {
  const NEAR = 80;
  const COUNTED = ".turn, .step, .say";
  const page = document.scrollingElement;
  let following = true;
  let fresh = 0;

  const gap = () => page.scrollHeight - page.scrollTop - innerHeight;
  const button = () => document.querySelector(".to-end");

  function end() {
    page.scrollTop = page.scrollHeight;
    following = true;
    show(0);
  }

  function show(count) {
    fresh = count;
    const holder = button();
    if (!holder) return;
    holder.hidden = following;
    const label = holder.querySelector("[data-count]");
    if (label) label.textContent = count ? label.dataset.count.replace("%d", count) : label.dataset.none;
  }

  function watch(thread) {
    if (!thread || "watched" in thread.dataset) return;
    thread.dataset.watched = "";
    new ResizeObserver(() => { following ? end() : show(fresh); }).observe(thread);
    new MutationObserver((changes) => {
      const added = changes.flatMap((change) => [...change.addedNodes]);
      const count = added.filter((node) => node.matches?.(COUNTED)).length;
      if (count && !following) show(fresh + count);
    }).observe(thread, { childList: true, subtree: true });
    if (location.hash) following = false;
    else end();
  }

  addEventListener("scroll", () => {
    if (!document.querySelector("[data-stick]")) return;
    following = gap() < NEAR;
    show(following ? 0 : fresh);
  }, { passive: true });

  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".to-end .btn")) end();
  });

  /* Sending is asking to see the answer. */
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-composer]")) following = true;
  });

  /* Toasts stand above the dock, however high what is written makes it. */
  const dock = new ResizeObserver(([{ borderBoxSize: [size] }]) => {
    document.body.style.setProperty("--dock", `${size.blockSize}px`);
  });

  function start() {
    watch(document.querySelector("[data-stick]"));
    for (const each of document.querySelectorAll(".dock")) dock.observe(each);
  }
  document.addEventListener("DOMContentLoaded", start);
  document.addEventListener("htmx:after:swap", start);
  if (document.readyState !== "loading") start();
})();
