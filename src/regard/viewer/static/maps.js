// From a document's plain data to one map that can be drawn. Nothing here touches a page.

export const KINDS = {
  cross: {
    name: "Cross",
    looks: "output",
    seen: "source",
    says: "Output looks at source. A row is one output token; its weights say where the model looked when it predicted that token.",
  },
  encoder: {
    name: "Encoder",
    looks: "source",
    seen: "source",
    says: "Source looks at itself. A row is one source token; its weights say which source tokens it was mixed from.",
  },
  decoder: {
    name: "Decoder",
    looks: "output",
    seen: "output so far",
    says: "Output looks at itself. A row is one output token; its weights say which earlier tokens the model looked at when it predicted that token.",
  },
};

/** The kinds of map an example has, in the order they are offered. */
export function kindsOf(example) {
  return Object.keys(KINDS).filter((kind) => example.maps.some((map) => map.kind === kind));
}

/** The layers kept of a kind, ascending: "mean" first where there are several. */
export function layersOf(example, kind) {
  const layers = keptLayers(example, kind);
  return layers.length > 1 ? ["mean", ...layers] : layers;
}

/** The heads kept of a layer: "mean" first where there are several or it was given. */
export function headsOf(example, kind, layer) {
  if (layer === "mean") return ["mean"]; // heads of different layers have nothing in common
  const found = mapsOf(example, kind, layer).map((map) => map.head);
  const heads = found.filter((head) => head !== "mean").sort((a, b) => a - b);
  return found.includes("mean") || heads.length > 1 ? ["mean", ...heads] : heads;
}

/** The view nearest to the one wished for that the example has. */
export function nearestView(example, wish) {
  const kinds = kindsOf(example);
  const kind = kinds.includes(wish.kind) ? wish.kind : kinds[0];
  const layers = layersOf(example, kind);
  const layer = layers.includes(wish.layer) ? wish.layer : layers[0];
  const heads = headsOf(example, kind, layer);
  const head = heads.includes(wish.head) ? wish.head : heads[0];
  return { kind, layer, head };
}

/** Everything a drawing needs of one view: tokens, weights, arg-max of each row, gold links. */
export function mapOf(example, view) {
  const weights = weightsOf(example, view);
  const output = example.output_tokens;
  const started = [{ text: "start", start: 0, end: 0 }, ...output].slice(0, output.length);
  const columns = view.kind === "decoder" ? started : example.source_tokens;
  return {
    kind: view.kind,
    columns,
    rows: KINDS[view.kind].looks === "output" ? output : example.source_tokens,
    weights,
    largest: weights.flat().reduce((most, weight) => Math.max(most, weight), 0),
    best: weights.map(bestOf),
    gold: view.kind === "cross" ? goldOf(example) : new Map(),
  };
}

/** Where the largest weight of a row stands, or -1 where the row sees nothing. */
export function bestOf(row) {
  const most = row.reduce((found, weight) => Math.max(found, weight), 0);
  return most > 0 ? row.indexOf(most) : -1;
}

/** A weight as people read it: four significant digits, no more than were kept. */
export function figure(weight) {
  return weight === 0 ? "0" : String(Number(weight.toPrecision(4)));
}

/** The text of a token without its marks, for a sentence about it. */
export function nameOf(token) {
  return token.text.replaceAll("▁", " ").trim() || "space";
}

function mapsOf(example, kind, layer) {
  return example.maps.filter((map) => map.kind === kind && map.layer === layer);
}

function keptLayers(example, kind) {
  const layers = example.maps.filter((map) => map.kind === kind).map((map) => map.layer);
  return [...new Set(layers)].sort((a, b) => a - b);
}

function weightsOf(example, view) {
  if (view.layer === "mean") {
    const layers = keptLayers(example, view.kind);
    return meanOf(layers.map((layer) => weightsOf(example, { ...view, layer, head: "mean" })));
  }
  const maps = mapsOf(example, view.kind, view.layer);
  const given = maps.find((map) => map.head === view.head);
  return given ? given.rows : meanOf(maps.map((map) => map.rows));
}

function meanOf(maps) {
  return maps[0].map((row, t) =>
    row.map((_, s) => maps.reduce((sum, map) => sum + map[t][s], 0) / maps.length),
  );
}

function goldOf(example) {
  const links = new Map();
  if (!example.gold) return links;
  for (const [s, t] of example.gold.possible) links.set(`${t},${s}`, "possible");
  for (const [s, t] of example.gold.sure) links.set(`${t},${s}`, "sure");
  return links;
}
