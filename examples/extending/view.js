// A view of the page: an object that says when it applies and how it draws.
//
// In the package: viewer/static/views/NAME.js, and a line of views.js beside it:
//
//     import { most } from "./most.js"; // and `most` in VIEWS
//
// What it says may stand in strings.js instead, in English and Chinese, as all others have it.
//
// views.js explains each member, reader.js has what the document holds. A style sheet of the same
// name is taken up by itself.
import { element } from "../page/dom.js";
import { STRINGS } from "../page/strings.js";

Object.assign(STRINGS, {
  most: ["Most", "最关注"],
  "most.says": ["What every token looks at most", "每个词元最关注哪个词元"],
});

export const most = {
  id: "most",
  controls: ["example", "kind", "layer", "head"],
  applies: ({ reader }, example) => reader.kinds(example).length > 0,
  create,
};

function create(host, { reader }) {
  const list = element("ol");
  host.append(list);
  async function show(state) {
    const { rows, columns } = reader.axes(state);
    const map = await reader.map(state); // null of a long text, whose weights the page does not hold
    const best = (map?.weights ?? []).map((row) => columns[row.indexOf(Math.max(...row))]);
    list.replaceChildren(...best.map(({ text }, at) => element("li", {}, `${rows[at].text} → ${text}`)));
  }
  return { show, destroy: () => list.remove() };
}
