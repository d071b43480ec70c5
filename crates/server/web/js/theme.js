// Applies the stored theme before the first paint.
(() => {
  let theme = "auto";
  try {
    theme = localStorage.getItem("switchboard.theme") ?? "auto";
  } catch {
    // Without storage, use the system setting.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
