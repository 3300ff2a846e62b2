// Kinds of attention, and figures of rows of weights. Nothing here touches a page.

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

// A decoder alone: its rows are the tokens it has read, not those it is about to write.
const ALONE = {
  name: "Decoder",
  looks: "output",
  seen: "output",
  says: "The text looks at itself. A row is one token that was read; its weights say which tokens up to it were mixed when the next one was predicted.",
};

// Two texts that a model reads beside each other, and writes neither.
const BESIDE = {
  ...KINDS.cross,
  says: "One text looks at the other. A row is one token that looks; its weights say what of the other was mixed into it. What it gave to marks or to its own text is left out.",
  called: { rows: "looking", columns: "looked at" },
};

/**
 * What looks and what is seen in a kind of attention of an example: `looks` and `seen` are sides,
 * `called` is what people read for `rows` and `columns`.
 */
export function sidesOf(example, kind) {
  if (kind === "cross" && example.answer?.side) return BESIDE;
  const sides = kind === "decoder" && example.started === false ? ALONE : KINDS[kind];
  if (sides === ALONE || (kind === "encoder" && !example.output_tokens.length)) {
    return { ...sides, says: sides.says.replace("Source looks", "The text looks").replaceAll("source token", "token"), called: { rows: "text", columns: "text" } };
  }
  return { ...sides, called: { rows: sides.looks, columns: sides.seen } };
}

/** The tokens of the rows and of the columns of a kind. */
export function tokensOf(example, kind) {
  const output = example.output_tokens;
  if (kind === "encoder") return { rows: example.source_tokens, columns: example.source_tokens };
  if (kind === "cross") return { rows: output, columns: example.source_tokens };
  if (example.started === false) return { rows: output, columns: output };
  const started = [{ text: "start", start: 0, end: 0 }, ...output].slice(0, output.length);
  return { rows: output, columns: started };
}

/** Gold links by "row,column". */
export function goldOf(example, kind) {
  const links = new Map();
  if (!example.gold || kind !== "cross") return links;
  for (const [s, t] of example.gold.possible) links.set(`${t},${s}`, "possible");
  for (const [s, t] of example.gold.sure) links.set(`${t},${s}`, "sure");
  return links;
}

/** Where the largest weight of a row stands, or -1 where the row sees nothing. */
export function bestOf(row) {
  let best = -1;
  let most = 0;
  row.forEach((weight, at) => {
    if (weight > most) [most, best] = [weight, at];
  });
  return best;
}

/** A row's entropy in nats. */
export function entropyOf(row) {
  return row.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log(weight) : sum), 0);
}

/** The mean of rows of the same length. */
export function meanRow(rows) {
  return Float32Array.from(rows[0], (_, at) => rows.reduce((sum, row) => sum + row[at], 0) / rows.length);
}

/** The largest entries of a row, as `{column, weight}`, falling; zeros are left out. */
export function largestOf(row, most) {
  const found = [];
  row.forEach((weight, column) => {
    if (weight > 0 && (found.length < most || weight > found.at(-1).weight)) {
      const place = found.findIndex((other) => weight > other.weight);
      found.splice(place < 0 ? found.length : place, 0, { column, weight });
      if (found.length > most) found.pop();
    }
  });
  return found;
}

/** A weight as people read it: at most four significant digits. */
export function figure(weight, digits = 4) {
  return weight === 0 ? "0" : String(Number(weight.toPrecision(digits)));
}

/** The text of a token without its marks, for a sentence about it. */
export function nameOf(token) {
  const text = token.text.replaceAll(/[▁Ġ]/g, " ").replaceAll(/\r?\n/g, "↵").replaceAll("\t", "⇥");
  return text.trim() || "space";
}
