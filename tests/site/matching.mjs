// node matching.mjs: reads {choices, typed: [text]} from standard input, writes the names that the page suggests for each text.

import { readFile } from "node:fs/promises";

import { matching } from "../../site/app/combobox.js";

const { choices, typed } = JSON.parse(await readFile("/dev/stdin", "utf8"));
process.stdout.write(JSON.stringify(typed.map((text) => matching(choices, text).map(([name]) => name))));
