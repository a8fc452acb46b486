// Requests as tools/site_build/requests.py writes them, with the bytes of their inputs.

import { readFile } from "node:fs/promises";

export async function loadRequests(file) {
  const { root, requests } = JSON.parse(await readFile(file, "utf8"));
  for (const request of requests) {
    for (const input of request.inputs ?? []) {
      if (input.at) input.bytes = new Uint8Array(await readFile(`${root}/${input.at}`));
      if (input.base64) input.bytes = new Uint8Array(Buffer.from(input.base64, "base64"));
    }
  }
  return requests;
}
