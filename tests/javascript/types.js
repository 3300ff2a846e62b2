// Types of the page's scripts, by TypeScript's checker: `npm run types`. A name without a JSDoc type is of any
// type, whatever it meets; that it has none is not reported (the codes below), all else is.

import { spawnSync } from "node:child_process";

const UNANNOTATED = /error TS(7005|7006|7011|7018|7019|7031|7034|7053):/;

const { status, stdout, stderr } = spawnSync("tsc", ["--project", "."], { encoding: "utf8" });
const [unannotated, errors] = [[], []];
// An error is a line; what explains it follows, indented.
for (const line of stdout.split("\n").filter(Boolean)) {
  const list = line.startsWith(" ") ? null : UNANNOTATED.test(line) ? unannotated : errors;
  if (list) list.push(line);
}
for (const line of errors) console.log(line);
if (stderr) console.error(stderr);
// A checker that found nothing at all has not read the scripts.
process.exitCode = errors.length || stderr || (status && !unannotated.length) ? 1 : 0;
