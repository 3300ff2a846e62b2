// Browsers start no worker from a file that is opened from disk, and the search of the site is one.
// There, and only there, a worker is a hidden frame of the same page that is told things the same way.
if (location.protocol === "file:") {
  // The script inside looks for this name, to find its own parts beside it.
  window.IFrameWorker = class extends EventTarget {
    constructor(script) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      this.started = new Promise((resolve, reject) => {
        inside.postMessage = (data) => this.tell(structuredClone(data));
        inside.importScripts = (...files) =>
          files.reduce((before, file) => before.then(() => load(inside, file)), Promise.resolve());
        load(inside, script).then(resolve, reject);
      });
    }

    // What the script inside says to the page.
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.started.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };

  window.Worker = window.IFrameWorker;

  // Links between languages ask for a map of the site, which no page from a disk may read: an empty
  // one leads to the same pages.
  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    const place = String(url).endsWith("/sitemap.xml") ? "data:text/xml,<urlset/>" : url;
    return open.call(this, method, place, ...rest);
  };

  function load(inside, file) {
    return new Promise((resolve, reject) => {
      const script = inside.document.createElement("script");
      script.src = new URL(file, location.href);
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${file} is not there`));
      inside.document.body.append(script);
    });
  }
}
