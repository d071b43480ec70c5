// Before anything is painted: the colours that the person chose the last time.
(() => {
  let theme = "auto";
  try {
    theme = localStorage.getItem("switchboard.theme") ?? "auto";
  } catch {
    // No storage: the system's colours.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
