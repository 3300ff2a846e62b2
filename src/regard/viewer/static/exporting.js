// What is shown, as a file: a picture (PNG or SVG), a table (CSV), or a link.
//
// A view's `picture()` is `{width, height, shapes}` in CSS pixels, drawn in order, each one of
//
//   {rect: [x, y, width, height], fill, stroke?, line?}
//   {text, at: [x, y], size, fill, anchor?: "start" | "middle" | "end", turn?: degrees, bold?}
//   {path: "M…C…", stroke, line, opacity?}       as the `d` of an SVG path
//   {image: canvas, at: [x, y, width, height]}   pixels are kept, not smoothed
//   {group: [shapes], at: [x, y]}                moved there
//
// framing.js puts a title and a legend around it.

import { element, shape } from "./dom.js";
import { inks } from "./palette.js";

const SHARPNESS = 2; // pixels of a PNG to one of the screen
export const FONT = '"Segoe UI","Helvetica Neue","Noto Sans","Liberation Sans",Arial,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif';

/** Buttons inside `host` that save what `view()` shows, or `picture()` of it, under what `name()` says. */
export function createExport(host, { view, picture, name, say }) {
  const buttons = {
    PNG: button("PNG", "Save the picture as pixels", async () => blobOf(await pngOf(picture())), "png"),
    SVG: button("SVG", "Save the picture as vectors", () => new Blob([svgOf(picture())], { type: "image/svg+xml" }), "svg"),
    CSV: button("CSV", "Save the numbers", async () => new Blob(["\ufeff", csvOf(await view().table())], { type: "text/csv" }), "csv"),
  };
  host.append(element("span", { class: "name" }, "Save"), ...Object.values(buttons));

  function button(title, says, make, ending) {
    return element("button", { type: "button", title: says, onclick: () => save(make, ending) }, title);
  }

  async function save(make, ending) {
    const file = `${name()}.${ending}`;
    const address = URL.createObjectURL(await make());
    const link = element("a", { href: address, download: file, hidden: true });
    host.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    say(`Saved ${file}`);
  }

  /** Offers what this view can be saved as. */
  function show(instance) {
    buttons.PNG.hidden = buttons.SVG.hidden = !instance?.picture;
    buttons.CSV.hidden = !instance?.table;
    host.hidden = !instance?.picture && !instance?.table;
  }

  return { show };
}

/** A table as text; fields are quoted where they must be. */
export function csvOf({ columns, rows }) {
  const field = (value) => {
    const text = String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => Array.from(row, field).join(",")).join("\r\n") + "\r\n";
}

/** A picture as the text of an SVG file. */
export function svgOf({ width, height, shapes }) {
  const drawn = shapes.map(shapeOf);
  const paper = shape("rect", { width: "100%", height: "100%", fill: inks().panel });
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT }, paper, ...drawn);
  return new XMLSerializer().serializeToString(svg);
}

function shapeOf(one) {
  const { fill = "none", stroke, line, opacity, dash } = one;
  if (one.group) return shape("g", { transform: `translate(${one.at.join(" ")})` }, ...one.group.map(shapeOf));
  if (one.rect) {
    const [x, y, w, h] = one.rect;
    return shape("rect", { x, y, width: w, height: h, fill, stroke, "stroke-width": line, "stroke-dasharray": dash });
  }
  if (one.path) return shape("path", { d: one.path, fill, stroke, "stroke-width": line, opacity, "stroke-linecap": "round" });
  if (one.image) {
    const [x, y, w, h] = one.at;
    const href = one.image.toDataURL("image/png");
    const image = shape("image", { x, y, width: w, height: h, href, preserveAspectRatio: "none" });
    image.style.imageRendering = "pixelated"; // as an attribute the page's content policy refuses it
    return image;
  }
  const [x, y] = one.at;
  return shape(
    "text",
    {
      x, y, fill, "font-size": one.size, "text-anchor": one.anchor, "font-weight": one.bold ? "bold" : null,
      transform: one.turn ? `rotate(${one.turn} ${x} ${y})` : null,
    },
    one.text,
  );
}

/** A picture as a canvas. */
export function pngOf({ width, height, shapes }) {
  const canvas = element("canvas", { width: Math.ceil(width * SHARPNESS), height: Math.ceil(height * SHARPNESS) });
  const pen = canvas.getContext("2d");
  pen.scale(SHARPNESS, SHARPNESS);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = inks().panel;
  pen.fillRect(0, 0, width, height);
  pen.lineCap = "round";
  for (const one of shapes) drawOn(pen, one);
  return canvas;
}

/** Draws a shape with a canvas's pen. */
export function drawOn(pen, one) {
  pen.save();
  pen.globalAlpha = one.opacity ?? 1;
  pen.fillStyle = one.fill ?? "transparent";
  pen.strokeStyle = one.stroke ?? "transparent";
  pen.lineWidth = one.line ?? 1;
  pen.setLineDash(one.dash ? one.dash.split(" ").map(Number) : []);
  if (one.group) {
    pen.translate(...one.at);
    for (const part of one.group) drawOn(pen, part);
  } else if (one.rect) {
    if (one.fill) pen.fillRect(...one.rect);
    if (one.stroke) pen.strokeRect(...one.rect);
  } else if (one.path) {
    const path = new Path2D(one.path);
    if (one.fill) pen.fill(path);
    pen.stroke(path);
  } else if (one.image) pen.drawImage(one.image, ...one.at);
  else {
    pen.font = `${one.bold ? "bold " : ""}${one.size}px ${FONT}`;
    pen.textAlign = { middle: "center", end: "right" }[one.anchor] ?? "left";
    pen.translate(...one.at);
    if (one.turn) pen.rotate((one.turn * Math.PI) / 180);
    pen.fillText(one.text, 0, 0);
  }
  pen.restore();
}

function blobOf(canvas) {
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
