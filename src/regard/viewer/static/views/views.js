// The views there are, in the order they are offered. A new view is a line here.
//
// The state is plain: {view, example, kind, layer, head, scale, row, column, find, ...}. Every
// member stands in the link to the page, so a view may add members of its own (text or numbers).

/**
 * @typedef {import("../data/contents.js").View & Record<string, any>} State
 * @typedef {{rows: number[], columns: number[]}} Hits
 *
 * @typedef Context what a view may use of the shell
 * @property {ReturnType<typeof import("../data/reader.js").createReader>} reader everything of the document
 * @property {(changes: Record<string, any>) => void} choose changes the state, after which show() is called;
 *   {view: "head"} asks for the view that shows single heads
 * @property {(position: any, isFirm: boolean, isFar?: boolean) => void} point says what is pointed at; firmly by focus or
 *   click, else in passing
 * @property {(text: string) => void} say announces a text to screen readers
 * @property {() => Hits} hits positions of tokens that were searched for
 * @property {(example: number) => boolean} canExplain whether a server would compute more of it
 * @property {(example: number) => boolean} takesApart whether a server takes a score apart on request
 * @property {(example: number, score: Record<string, any>) => Promise<void>} takeApart requests that
 * @property {(example: number) => Record<string, string>} languages those of an example's sides: {source, output, "output so far"}
 *
 * @typedef Instance
 * @property {(state: State) => Promise<any>} show draws a state; never called again before it is done
 * @property {() => void} [destroy] lets go of what is outside `host`, or under way
 * @property {(position: any) => any} [mark] shows what is pointed at: {row, column}, either of them null; and, of several
 *   tokens of a side, {rows} or {columns}: chosenOf in maps.js reads both
 * @property {(position: any) => void} [reveal] brings a position into sight
 * @property {() => void} [fit] the size, the theme or the font changed
 * @property {(event: KeyboardEvent) => any} [press] a key; true if it was used
 * @property {() => void} [focus] takes the keyboard
 * @property {() => any} [picture] {width, height, shapes} for PNG and SVG: see exporting.js
 * @property {() => any} [table] {columns: [names], rows: [[values]]} for CSV
 *
 * @typedef ViewType
 * @property {string} id stands in links; strings.js has its name on the tab by `id`, and by `id.says` the tooltip
 * @property {string[]} controls which of "kind", "layer", "head", "pair", "scale" (and "example") choose what it shows;
 *   "heads" where it can show all of a layer at once
 * @property {boolean} [picks] set where several tokens can be taken together, with Shift
 * @property {string} [reads] "links" where single weights are drawn, "vectors" where queries and keys are: it then opens
 *   at a head that has some
 * @property {(state: Partial<State>) => boolean} [needs] whether it shows what a served page computes only on request
 * @property {(context: Context, example: number) => boolean} applies whether there is anything to show of the example
 * @property {(host: HTMLElement, context: Context) => Instance} create fills `host`
 */

import { answer } from "./answer.js";
import { compare } from "./comparing.js";
import { flow } from "./flow.js";
import { grid } from "./grid.js";
import { image } from "./image.js";
import { lens } from "./lens.js";
import { links } from "./links.js";
import { map } from "./map.js";
import { neurons } from "./neurons.js";
import { running } from "./running.js";
import { stream } from "./stream.js";
import { trust } from "./trust.js";
import { words } from "./words.js";

/** @type {ViewType[]} */
export const VIEWS = [answer, image, grid, words, map, links, running, neurons, flow, trust, lens, stream, compare];
