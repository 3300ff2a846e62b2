// The figures of a position in a text of any length: its largest weights, how spread they are, what it receives.

import { element, redraw, tokenLabel } from "../page/dom.js";
import { listed, t } from "../page/language.js";
import { figure, largestOf, nameOf, sumOf } from "../data/maps.js";
import { entryList, listsOf, pairOf } from "./attention.js";

const MOST = 8; // tokens listed

/** Figures inside `host`; `show(state, position, say)` may be called again before it is done. */
export function createFacts(host, { reader, point }) {
  const go = (position) => point(position, true, true);
  let turn = 0;
  let announced = "";

  async function show(state, { row, column }, say) {
    const mine = ++turn;
    const axes = reader.axes(state);
    if (row === null && column === null) {
      const parts = await overviewOf(reader, state, go);
      if (mine === turn) host.replaceChildren(...parts, element("p.hint", t("words.point")));
      return;
    }
    const [top, exact, entropy, received] = await Promise.all([
      row === null ? null : reader.top(state, row, MOST),
      row === null || column === null ? null : weightOf(state, row, column),
      row === null ? null : reader.line(state, "entropy"),
      column === null ? null : reader.line(state, "received"),
    ]);
    if (mine !== turn) return;
    redraw(
      host,
      exact && element("p.weight", exact.text),
      exact?.note && element("p.hint", exact.note),
      row !== null && column !== null && element("p.pair", ...pairOf(axes, row, column)),
      ...(row === null ? [] : rowParts(axes, row, column, top, entropy)),
      ...(received ? columnParts(axes, column, received) : []),
    );
    announce(axes, row, column, top, exact, say);
  }

  async function weightOf(state, row, column) {
    const rows = await reader.rows(state, [row]);
    if (rows) return { text: figure(rows[0][column], 3), note: "" };
    const stored = await reader.storedTop(state, row);
    const entry = stored?.entries.find(({ at }) => at === column);
    if (entry) return { text: figure(entry.weight, 3), note: "" };
    const pooled = await reader.pooled(state);
    if (!pooled) return null;
    const [height, width] = pooled.bucket;
    const share = pooled.share(...pooled.at(row, column));
    return { text: figure(share, 3), note: t("facts.share", { height, width }) };
  }

  function rowParts(axes, row, column, top, entropy) {
    const entries = top?.entries ?? null;
    const limit =
      top?.isWhole === false && t(entries.length === 1 ? "facts.top.one" : "facts.top.many", { count: entries.length });
    const list = {
      topKeys: entries,
      full: entries?.[0]?.weight,
      marked: [column],
      number: row + 1,
      note: limit,
      missing: t("facts.no-weights"),
    };
    const parts = listsOf({ axes, from: [row], to: [], go, ...list }).flat();
    if (!entropy) return parts;
    const value = valueAt(entropy, row);
    const says = { value: figure(value, 3), count: figure(Math.exp(value), 3), average: onAverage(entropy) };
    return [...parts, element("p.hint", t("facts.entropy", says))];
  }

  function columnParts(axes, column, received) {
    const says = {
      value: figure(valueAt(received, column), 3),
      count: axes.rows.length.toLocaleString("en"),
      average: onAverage(received),
    };
    return [
      element(
        "h3",
        tokenLabel(axes.columns[column], axes.languages.columns),
        element("small", ` ${t("facts.receives", { number: column + 1 })}`),
      ),
      element("p.hint", t("facts.received", says)),
    ];
  }

  // A row as one sentence, for people who listen.
  function announce(axes, row, column, top, exact, say) {
    const best = (top?.entries ?? [])
      .slice(0, 3)
      .map((entry) => `${nameOf(axes.columns[entry.at])} ${figure(entry.weight, 2)}`);
    const cell =
      exact && column !== null ? t("facts.row.cell", { token: nameOf(axes.columns[column]), weight: exact.text }) : "";
    const text =
      row === null
        ? t("facts.column", { number: column + 1, token: nameOf(axes.columns[column]) })
        : t("facts.row", { number: row + 1, token: nameOf(axes.rows[row]), cell }) +
          (best.length ? t("facts.row.most", { tokens: listed(best) }) : "");
    if (text !== announced) say(text);
    announced = text;
  }

  return { show };
}

/** Where nothing is pointed at: what receives most, each a button for `go(position)`, and how spread the rows are. */
export async function overviewOf(reader, state, go) {
  const axes = reader.axes(state);
  const [received, entropy] = await Promise.all([reader.line(state, "received"), reader.line(state, "entropy")]);
  const parts = [];
  if (received) {
    const { values, span } = received;
    const entries = largestOf(values, MOST).map(({ at, weight }) => ({ at: at * span, weight: weight * span }));
    const line = { tokens: axes.columns, language: axes.languages.columns };
    const goTo = (column) => go({ row: null, column });
    parts.push(element("h3", t("facts.most")), entryList(line, entries, goTo, { full: entries[0]?.weight }));
    if (span > 1) parts.push(element("p.fact", t("facts.spans", { count: span })));
  }
  if (entropy) {
    const mean = sumOf(entropy.values) / Math.max(1, entropy.values.length);
    parts.push(element("p.fact", t("facts.mean", { value: figure(mean, 3) })));
  }
  return parts;
}

const valueAt = ({ values, span }, at) => values[Math.floor(at / span)];

const onAverage = ({ span }) => (span > 1 ? t("facts.average", { count: span }) : "");
