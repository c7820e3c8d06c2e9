"use strict";
// The charts' code is compressed: it is a third as long then.
globalThis.unpacked = (async () => {
  const packed = atob(document.getElementById("plotly").textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
})();
