// The views there are, in the order they are offered. A new view is a line here.
//
// A view is `{id, controls, applies(context, example), create(host, context)}`:
//
// - `id` stands in links; strings.js has its name on the tab by `id`, and by `id.says` the tooltip.
// - `controls` names which of "kind", "layer", "head", "pair", "scale" (and "example") choose what it shows; "heads" where
//   it can show all of a layer at once.
// - `picks` is set where several tokens can be taken together, with Shift.
// - `reads` is "links" where single weights are drawn, "vectors" where queries and keys are: it then opens
//   at a head that has some.
// - `needs(state)` says whether it shows what a served page computes only on request.
// - `applies` says whether there is anything to show of the example at that position.
// - `create` fills `host` and returns an object with
//     async show(state)   draws a state; never called again before it is done
//   and, where it makes sense,
//     destroy()           lets go of what is outside `host`, or under way
//     mark(position)         shows what is pointed at: {row, column}, either of them null; and, of several
//                         tokens of a side, {rows} or {columns}: chosenOf in maps.js reads both
//     reveal(position)       brings a position into sight
//     fit()               the size, the theme or the font changed
//     press(event)        a key; true if it was used
//     focus()             takes the keyboard
//     picture()           {width, height, shapes} for PNG and SVG: see exporting.js
//     table()             {columns: [names], rows: [[values]]} for CSV
//
// The state is plain: {view, example, kind, layer, head, scale, row, column, find, ...}. Every
// member stands in the link to the page, so a view may add members of its own (text or numbers).
//
// The context is what a view may use of the shell:
//     reader              everything of the document: reader.js
//     choose(changes)     changes the state, after which show() is called; {view: "head"} asks for
//                         the view that shows single heads
//     point(position, firm)  says what is pointed at; firmly by focus or click, else in passing
//     say(text)           announces a text to screen readers
//     hits()              positions of tokens that were searched for: {rows: [], columns: []}
//     canExplain(example) whether a server would compute more of it
//     takesApart(example) whether a server takes a score apart on request: takeApart(example, score)
//     languages(example)  {source, output, "output so far"}: languages of an example's sides

/**
 * @typedef {import("../data/contents.js").View & Record<string, any>} State
 * @typedef {{rows: number[], columns: number[]}} Hits
 *
 * @typedef Context
 * @property {ReturnType<typeof import("../data/reader.js").createReader>} reader
 * @property {(changes: Record<string, any>) => void} choose
 * @property {(position: any, isFirm: boolean, isFar?: boolean) => void} point
 * @property {(text: string) => void} say
 * @property {() => Hits} hits
 * @property {(example: number) => boolean} canExplain
 * @property {(example: number) => boolean} takesApart
 * @property {(example: number, score: Record<string, any>) => Promise<void>} takeApart
 * @property {(example: number) => Record<string, string>} languages
 *
 * @typedef Instance
 * @property {(state: State) => Promise<any>} show
 * @property {() => void} [destroy]
 * @property {(position: any) => any} [mark]
 * @property {(position: any) => void} [reveal]
 * @property {() => void} [fit]
 * @property {(event: KeyboardEvent) => any} [press]
 * @property {() => void} [focus]
 * @property {() => any} [picture]
 * @property {() => any} [table]
 *
 * @typedef ViewType
 * @property {string} id
 * @property {string[]} controls
 * @property {boolean} [picks]
 * @property {string} [reads]
 * @property {(state: Partial<State>) => boolean} [needs]
 * @property {(context: Context, example: number) => boolean} applies
 * @property {(host: HTMLElement, context: Context) => Instance} create
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
