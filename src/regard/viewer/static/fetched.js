// Exact rows from a server, or from the kernel behind a notebook. Pages that are files do not have
// this module: they ask for nothing.

/**
 * A source (see source.js) that asks `address` by GET:
 *
 *   ADDRESS?example=0&kind=decoder&layer=3&head=5&queries=17,18
 *
 * The answer is the rows one after another, as little-endian 32-bit floats; a status other than
 * 200 says that there are none. It is asked for plans of masks as
 *
 *   ADDRESS?mask=causal()&queries=24&keys=24&heads=8&head_dim=64
 *
 * and answers with JSON; `{message}` says why there is none, with a status other than 200.
 */
export function createFetched(address, options = {}) {
  async function rows(example, kind, layer, head, queries) {
    const asked = new URLSearchParams({ example, kind, layer, head, queries: queries.join(",") });
    const answer = await fetch(`${address}?${asked}`, options);
    if (!answer.ok) return null;
    const view = new DataView(await answer.arrayBuffer());
    const width = view.byteLength / 4 / queries.length;
    return queries.map((_, at) =>
      Float32Array.from({ length: width }, (_, key) => view.getFloat32(4 * (at * width + key), true)),
    );
  }

  async function explain(mask, sizes) {
    const answer = await fetch(`${address}?${new URLSearchParams({ mask, ...sizes })}`, options);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.message);
    return found;
  }

  return { rows, explain };
}
