// Keeps the page for use without a network, and lets nothing out: only files of this list are answered, anything else is refused.
// The build writes the two constants.

const VERSION = "";
const FILES = {};

const CACHE = `oomdoctor-${VERSION}`;
const SCOPE = new URL("./", self.location).href;

self.addEventListener("install", (event) => event.waitUntil(keepAll()));
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));
self.addEventListener("fetch", (event) => event.respondWith(answer(event.request)));
// The page asks for this once its reader agreed to load the new version.
self.addEventListener("message", ({ data }) => data === "skip-waiting" && self.skipWaiting());

/** Keep every file; one that is not what the build wrote stops the installation, and the old version stays. */
async function keepAll() {
  const cache = await caches.open(CACHE);
  await Promise.all(
    Object.entries(FILES).map(async ([path, sha256]) => {
      const response = await fetch(SCOPE + path, { cache: "no-cache" });
      if (!response.ok || (await digest(response.clone())) !== sha256) throw new Error(`${path} is not the file of this version`);
      await cache.put(SCOPE + path, response);
    }),
  );
}

async function digest(response) {
  const hash = await crypto.subtle.digest("SHA-256", await response.arrayBuffer());
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function takeOver() {
  for (const name of await caches.keys()) {
    if (name.startsWith("oomdoctor-") && name !== CACHE) await caches.delete(name);
  }
  await self.clients.claim();
}

async function answer(request) {
  const { origin, pathname } = new URL(request.url);
  const path = (origin + pathname).slice(SCOPE.length) || "index.html";
  if (request.method !== "GET" || !request.url.startsWith(SCOPE) || !(path in FILES)) return Response.error();
  const kept = await (await caches.open(CACHE)).match(SCOPE + path);
  return kept ?? fetch(request);
}
