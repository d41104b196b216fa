/* The API's description has a dark look of its own, which it takes only from a class. */
document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);
