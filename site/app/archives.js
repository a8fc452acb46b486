// Archives as the files in them, unpacked here: CI keeps its logs as zips. What is no archive, or none that can be read, stays what it is.

const MOST_FILES = 20_000;
const MOST_BYTES = 2 ** 29; // of all files of an archive: a tab has little more
const BLOCK = 512;
const END_OF_ZIP = 0x06054b50;
const ENTRY_OF_ZIP = 0x02014b50;
const LONGEST_COMMENT = 65_557;

/** Return the files with each archive as a folder of its name: `[{path, file}]`. */
export async function unpacked(found) {
  const files = [];
  for (const each of found) {
    const name = each.path.split("/").at(-1);
    const read = /\.zip$/i.test(name) ? zip : /\.(tar|tgz|tar\.gz)$/i.test(name) ? tar : null;
    const inside = read && (await read(each.file).catch(() => null));
    const folder = name.replace(/\.(zip|tgz|tar|tar\.gz)$/i, "");
    if (inside?.length) files.push(...inside.map(({ path, file }) => ({ path: `${folder}/${path}`, file })));
    else files.push(each);
  }
  return files;
}

async function zip(file) {
  const tail = await view(file, Math.max(0, file.size - LONGEST_COMMENT), file.size);
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== END_OF_ZIP) end -= 1;
  const start = tail.getUint32(end + 16, true);
  const list = await view(file, start, start + tail.getUint32(end + 12, true));
  const files = [];
  const room = { bytes: MOST_BYTES };
  for (let at = 0; at + 46 <= list.byteLength && list.getUint32(at, true) === ENTRY_OF_ZIP && files.length < MOST_FILES;) {
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => list.getUint16(at + offset, true));
    const path = safe(text(list, at + 46, nameLength));
    const data = await zipped(file, list.getUint32(at + 42, true), list.getUint32(at + 20, true), list.getUint16(at + 10, true), room);
    if (path && data) files.push({ path, file: new File([data], path.split("/").at(-1)) });
    at += 46 + nameLength + extra + comment;
  }
  return files;
}

/** Return the data of one entry; null where it is packed in a way that browsers do not read. */
async function zipped(file, header, size, method, room) {
  if (!size || (method !== 0 && method !== 8)) return null;
  const local = await view(file, header, header + 30);
  const start = header + 30 + local.getUint16(26, true) + local.getUint16(28, true);
  const data = file.slice(start, start + size);
  return limited(method ? data.stream().pipeThrough(new DecompressionStream("deflate-raw")) : data.stream(), room);
}

async function tar(file) {
  const first = await view(file, 0, 2);
  const plain = first.getUint16(0) === 0x1f8b ? await limited(file.stream().pipeThrough(new DecompressionStream("gzip")), { bytes: MOST_BYTES }) : file;
  const files = [];
  let long = null; // a name that the header of the file has no room for
  for (let at = 0; at + BLOCK <= plain.size && files.length < MOST_FILES;) {
    const head = await view(plain, at, at + BLOCK);
    const size = parseInt(text(head, 124, 12), 8);
    if (!Number.isFinite(size)) break;
    const data = plain.slice(at + BLOCK, at + BLOCK + size);
    const kind = String.fromCharCode(head.getUint8(156));
    if (kind === "L") long = (await data.text()).replace(/\0.*$/s, "");
    else if (kind === "x") long = /^\d+ path=(.*)$/m.exec(await data.text())?.[1] ?? long;
    else {
      const path = safe(long ?? [text(head, 345, 155), text(head, 0, 100)].filter(Boolean).join("/"));
      if (path && size && (kind === "0" || kind === "\0")) files.push({ path, file: new File([data], path.split("/").at(-1)) });
      long = null;
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

/** Return a stream as a Blob. Throws where more comes than there is room for: a small archive can hold very much. */
async function limited(stream, room) {
  const counted = stream.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      room.bytes -= chunk.byteLength;
      if (room.bytes < 0) throw new Error("too large");
      controller.enqueue(chunk);
    },
  }));
  return new Response(counted).blob();
}

async function view(blob, start, end) {
  return new DataView(await blob.slice(start, end).arrayBuffer());
}

function text(data, start, length) {
  return new TextDecoder().decode(new Uint8Array(data.buffer, start, length)).replace(/\0.*$/s, "").trim();
}

/** A path that stays in its folder; of a folder nothing. */
function safe(path) {
  if (path.endsWith("/")) return "";
  return path.replaceAll("\\", "/").split("/").filter((part) => part && part !== "." && part !== "..").join("/");
}
