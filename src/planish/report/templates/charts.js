"use strict";
const planish = (() => {
  const PAPER_PX = 680;
  const options = { responsive: true, displayModeBar: false };
  const figures = new Map();
  const folded = [...document.querySelectorAll("details")];

  // Charts take the colours and the font of the page, and stay zoomed when their data change.
  const dress = (layout) => {
    const root = getComputedStyle(document.documentElement);
    const colour = (name) => root.getPropertyValue(name).trim();
    const text = colour("--text"), soft = colour("--soft"), grid = colour("--grid"), panel = colour("--panel");
    const dressed = {
      ...layout,
      uirevision: "page",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
      hoverlabel: { bgcolor: panel, bordercolor: grid, font: { color: text } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: text },
    };
    for (const name of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
      dressed[name] = { ...layout[name], gridcolor: grid, linecolor: grid, tickcolor: grid };
    }
    return dressed;
  };

  const redraw = (width) => {
    for (const [element, { data, layout }] of figures) {
      if (element.isConnected) {
        Plotly.react(element, data, { ...dress(layout), ...(width ? { width, autosize: false } : {}) }, options);
      } else {
        figures.delete(element);
      }
    }
  };

  // Each chart is followed by its figure as JSON.
  const draw = (root) => {
    for (const element of root.querySelectorAll(".chart")) {
      const { data, layout } = JSON.parse(element.nextElementSibling.textContent);
      figures.set(element, { data, layout });
      Plotly.react(element, data, dress(layout), options);
    }
  };

  // A report unpacks Plotly first; other pages have loaded it.
  (globalThis.unpacked ?? Promise.resolve()).then(() => draw(document)).catch((error) => {
    for (const element of document.querySelectorAll(".chart")) {
      element.textContent = `This browser cannot draw the charts (${error.message}): use one of 2023 or later.`;
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

  // Paper does not unfold, and its width is not the window's.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folded.filter((details) => !details.open);
    opened.forEach((details) => { details.open = true; });
    redraw(PAPER_PX);
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
    redraw();
  });
  return { draw };
})();
