// The entry of a page that fetches exact rows from a notebook's kernel or a server. Pages
// that are files do not have this module.

import { open } from "./page/viewer.js";

/**
 * A source of exact rows. `rows(example, kind, layer, head, queries)` resolves to a Float32Array over
 * all keys for each query, or to null; layer and head are numbers from 0 or "mean". It requests by GET
 *
 *   ADDRESS?example=0&kind=decoder&layer=3&head=5&queries=17,18
 *
 * for at most 64 rows. The answer is the rows one after another, as little-endian 32-bit floats; a
 * status other than 200 says that there are none.
 */
export function createFetched(address, options = {}) {
  async function rows(example, kind, layer, head, queries) {
    const parameters = new URLSearchParams({ example, kind, layer, head, queries: queries.join(",") });
    const answer = await fetch(`${address}?${parameters}`, options);
    if (!answer.ok) return null;
    const view = new DataView(await answer.arrayBuffer());
    const width = view.byteLength / 4 / queries.length;
    return queries.map((_, at) =>
      Float32Array.from({ length: width }, (_, key) => view.getFloat32(4 * (at * width + key), true)),
    );
  }

  return { rows };
}

open(createFetched(document.getElementById("regard-data").dataset.rows));
