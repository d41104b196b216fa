/* The inbox from the keyboard. Keys work while a card has the focus, so that speech and stray typing decide nothing
   (WCAG 2.1.4); the first card, or the one of the address, has it when the page is opened with a mouse or a keyboard at
   hand.

   data-keys    a list of cards: J and K move
   data-key     inside a card: the letter that presses the button, or unfolds the form and goes into it
   Escape leaves the form and folds it up. */
(() => {
  const cards = () => [...document.querySelectorAll("[data-keys] > article")];

  function move(card, by) {
    const all = cards();
    all[all.indexOf(card) + by]?.focus();
  }

  function press(button) {
    button.click();
    const form = button.parentElement;
    if (form.matches("details[open]")) form.querySelector("textarea, input")?.focus();
  }

  /* What was typed into the form stays there. */
  function leave(card) {
    card.querySelector("details[open]")?.removeAttribute("open");
    card.focus();
  }

  document.addEventListener("keydown", (event) => {
    const card = event.target.closest?.("[data-keys] > article");
    if (!card || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return leave(card);
    if (event.target.matches("input, textarea, select")) return;
    const letter = event.key.toLowerCase();
    const button = card.querySelector(`[data-key="${CSS.escape(letter)}"]`);
    if (!button && letter !== "j" && letter !== "k") return;
    event.preventDefault();
    if (button) button.checkVisibility() && press(button);
    else move(card, letter === "j" ? 1 : -1);
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (matchMedia("(pointer: fine)").matches) (cards().find((card) => card.matches(":target")) ?? cards()[0])?.focus({ preventScroll: true });
  });
})();
