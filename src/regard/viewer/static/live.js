// The entry of a page that fetches exact rows from a notebook's kernel or a server. Pages
// that are files do not have this module.

import { open } from "./page/viewer.js";

const { rows: address } = document.getElementById("regard-data").dataset;

/**
 * A source of exact rows: resolves to a Float32Array over all keys for each query, or to null; layer and head are
 * numbers from 0 or "mean". It requests by GET
 *
 *   ADDRESS?example=0&kind=decoder&layer=3&head=5&queries=17,18
 *
 * for at most 64 rows. The answer is the rows one after another, as little-endian 32-bit floats; a
 * status other than 200 says that there are none.
 */
async function rows(example, kind, layer, head, queries) {
  const parameters = new URLSearchParams({ example, kind, layer, head, queries: queries.join(",") });
  const answer = await fetch(`${address}?${parameters}`);
  if (!answer.ok) return null;
  const view = new DataView(await answer.arrayBuffer());
  const width = view.byteLength / 4 / queries.length;
  const numberAt = (row, key) => view.getFloat32(4 * (row * width + key), true);
  return queries.map((_, row) => Float32Array.from({ length: width }, (_, key) => numberAt(row, key)));
}

open({ rows });
