"use strict";
(() => {
  const PAPER_PX = 680;
  const charts = [...document.querySelectorAll(".chart")].map((element) => {
    const { data, layout } = JSON.parse(element.nextElementSibling.textContent);
    return { element, data, layout };
  });
  const options = { responsive: true, displayModeBar: false };
  const folded = [...document.querySelectorAll("details")];

  // Charts take the colours and the font of the page.
  const dress = (layout) => {
    const root = getComputedStyle(document.documentElement);
    const colour = (name) => root.getPropertyValue(name).trim();
    const text = colour("--text"), soft = colour("--soft"), grid = colour("--grid"), panel = colour("--panel");
    const dressed = {
      ...layout,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
      hoverlabel: { bgcolor: panel, bordercolor: grid, font: { color: text } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: text },
    };
    for (const name of Object.keys(layout).filter((key) => /^[xy]axis/.test(key))) {
      dressed[name] = { ...layout[name], gridcolor: grid, linecolor: grid, tickcolor: grid };
    }
    return dressed;
  };

  const draw = (width) => {
    for (const { element, data, layout } of charts) {
      Plotly.react(element, data, { ...dress(layout), ...(width ? { width, autosize: false } : {}) }, options);
    }
  };

  chartsCode.then(() => {
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
    addEventListener("beforeprint", () => draw(PAPER_PX));
    addEventListener("afterprint", () => draw());
  }).catch((error) => {
    for (const { element } of charts) {
      element.textContent = `This browser cannot draw the charts (${error.message}): use one of 2023 or later.`;
    }
  });

  // Paper does not unfold, and its width is not the window's.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folded.filter((details) => !details.open);
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
  });
})();
