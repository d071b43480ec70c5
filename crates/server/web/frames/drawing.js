// Renders diagrams and charts as images. Runs in a sandboxed frame with an opaque origin, because
// the input was written by a model. Only images leave the frame.
(() => {
  // Deletes the WebRTC interfaces, because not all browsers support the policies in page.rs that
  // block WebRTC.
  for (let object = window; object; object = Object.getPrototypeOf(object)) {
    for (const name of Object.getOwnPropertyNames(object)) if (name.includes("RTC")) delete object[name];
  }
  const loaded = new Map();
  // URLs are relative to this script, because the server can have any base path.
  const scriptUrl = document.currentScript.src;

  function load(name) {
    if (!loaded.has(name)) {
      loaded.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(`../vendor/${name}.js`, scriptUrl).href;
        script.onload = resolve;
        script.onerror = () => {
          loaded.delete(name);
          reject(new Error("the rendering library could not be loaded"));
        };
        document.head.append(script);
      }));
    }
    return loaded.get(name);
  }

  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

  async function renderMermaid(text, dark, number) {
    await load("mermaid");
    const mermaid = globalThis.mermaid;
    const colours = dark
      ? { background: "#1a1d21", primaryColor: "#1f3a38", primaryTextColor: "#e7eaec", primaryBorderColor: "#5cc4b4", lineColor: "#8b959d", secondaryColor: "#2a2f35", tertiaryColor: "#22262b", edgeLabelBackground: "#1a1d21" }
      : { background: "#ffffff", primaryColor: "#e2f1ee", primaryTextColor: "#1d2124", primaryBorderColor: "#0f6b63", lineColor: "#667078", secondaryColor: "#f1efe9", tertiaryColor: "#f7f6f3", edgeLabelBackground: "#ffffff" };
    mermaid.initialize({
      startOnLoad: false, securityLevel: "strict", theme: "base", darkMode: dark, htmlLabels: false, flowchart: { htmlLabels: false },
      themeVariables: { ...colours, fontFamily: font, fontSize: "14px" }, fontFamily: font, suppressErrorRendering: true, maxTextSize: 100_000,
      // Outlines edge labels in the background colour, so that they stay readable on the line.
      themeCSS: `.edgeLabel text { paint-order: stroke; stroke: ${colours.background}; stroke-width: 6px; stroke-linejoin: round; }`,
    });
    const { svg } = await mermaid.render(`drawing${number}`, text);
    const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const [, , width, height] = (root.getAttribute("viewBox") ?? "0 0 600 400").split(/\s+/).map(Number);
    root.setAttribute("width", width);
    root.setAttribute("height", height);
    root.style.maxWidth = "";
    const picture = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(root))}`;
    return { picture, width, height };
  }

  async function renderChart(config, dark, width) {
    await load("chart");
    const { Chart } = globalThis;
    const height = Math.round(Math.min(340, Math.max(220, width * 0.42)));
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    document.body.append(canvas);
    try {
      Chart.defaults.font.family = font;
      Chart.defaults.color = dark ? "#b4bcc3" : "#4c545b";
      Chart.defaults.borderColor = dark ? "#32383e" : "#e4e3de";
      const chart = new Chart(canvas, {
        ...config,
        options: { ...config.options, animation: false, responsive: false, devicePixelRatio: 2, events: [] },
      });
      const picture = chart.toBase64Image("image/png");
      chart.destroy();
      return { picture, width, height };
    } finally {
      canvas.remove();
    }
  }

  let queue = Promise.resolve();
  addEventListener("message", (event) => {
    if (event.source !== parent) return;
    const { number, kind, text, config, dark, width } = event.data ?? {};
    if (typeof number !== "number") return;
    // Handle requests one at a time, because the libraries have global state.
    queue = queue.then(async () => {
      try {
        const image = kind === "chart" ? await renderChart(config, dark, width) : await renderMermaid(text, dark, number);
        parent.postMessage({ switchboard: "picture", number, ...image }, "*");
      } catch (error) {
        parent.postMessage({ switchboard: "picture", number, error: String(error?.message ?? error).slice(0, 500) }, "*");
      }
    });
  });
  parent.postMessage({ switchboard: "ready" }, "*");
})();
