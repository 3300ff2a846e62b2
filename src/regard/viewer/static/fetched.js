// Exact rows from a server, or from the kernel behind a notebook. Pages that are files do not have
// this module: they ask for nothing.

/**
 * A source (see source.js) that asks `address` by GET:
 *
 *   ADDRESS?example=0&kind=decoder&layer=3&head=5&queries=17,18
 *
 * The answer is the rows one after another, as little-endian 32-bit floats; a status other than
 * 200 says that there are none.
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

  return { rows };
}
