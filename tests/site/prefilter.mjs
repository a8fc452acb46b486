// Reads cases as JSON from standard input, writes the hits of each: [literal, end, ...].

import { readFileSync } from "node:fs";

import { build, scan } from "../../site/worker/prefilter.js";

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const cases = JSON.parse(readFileSync(0, "utf8"));
const hits = cases.map(({ literals, data, start, end, mask }) =>
  Array.from(scan(build(literals.map(bytes)), bytes(data).subarray(start, end), start, mask && Uint8Array.from(mask))),
);
process.stdout.write(JSON.stringify(hits));
