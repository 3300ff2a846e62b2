// Frames of pages follow the dark button, which the page around them has.
(() => {
  const send = (frame) => {
    const theme = document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";
    frame.contentWindow.postMessage({ theme }, "*");
  };
  const frames = [...document.querySelectorAll("iframe.live")];
  for (const frame of frames) {
    frame.addEventListener("load", () => send(frame));
    send(frame);
  }
  new MutationObserver(() => frames.forEach(send)).observe(document.body, {
    attributeFilter: ["data-md-color-scheme"],
  });
})();
