// Where exact rows come from, when the document itself does not hold them.

/**
 * A source has one function:
 *
 *   await source.rows(example, kind, layer, head, queries)
 *
 * `example` is the place of the example in the document, `layer` and `head` are numbers counted
 * from 0, or "mean", `queries` a list of places of queries. The answer is a list of Float32Arrays,
 * one row of weights over all keys per query, in that order; or null where the source has none. The
 * reader asks the document first, asks for at most 64 rows at a time, and keeps what it got.
 *
 * A page that is a file has nobody to ask.
 */
export const NO_SOURCE = null;
