// Finds all literals in one pass (Aho-Corasick), in place of hyperscan, which no browser has.
//
// A state is the longest beginning of a literal that the text ends with. Bytes that stand in no literal are one class, so that a row
// of the table is short. The table holds where the row of the next state begins; its complement where a literal ends there.

/** Build the automaton of some literals (Uint8Arrays); one is reported by its place in the list, an empty one never. */
export function build(literals) {
  const { classes, width } = byteClasses(literals);
  const most = literals.reduce((sum, literal) => sum + literal.length, 1);
  let table = new Int32Array(most * width);
  const ends = [[]];
  let states = 1;
  literals.forEach((literal, number) => {
    let state = 0;
    for (const byte of literal) {
      const cell = state * width + classes[byte];
      if (table[cell] === 0) {
        table[cell] = states++;
        ends.push([]);
      }
      state = table[cell];
    }
    if (literal.length) ends[state].push(number);
  });
  table = table.slice(0, states * width);
  complete(table, width, ends);
  for (let cell = 0; cell < table.length; cell++) {
    const state = table[cell];
    table[cell] = ends[state].length ? ~(state * width) : state * width;
  }
  return { classes, width, table, ends: ends.map((numbers) => Int32Array.from(numbers).sort()), count: literals.length };
}

/**
 * Return the hits in `bytes` as [literal, offset after it + shift, ...], by their ends, and at one end by their numbers.
 * `mask` says for each literal whether it is looked for (1) or not (0); null: all are.
 */
export function scan({ classes, width, table, ends }, bytes, shift = 0, mask = null) {
  let hits = new Int32Array(256);
  let count = 0;
  let row = 0;
  for (let at = 0; at < bytes.length; at++) {
    row = table[row + classes[bytes[at]]];
    if (row < 0) {
      row = ~row;
      for (const literal of ends[row / width]) {
        if (mask !== null && !mask[literal]) continue;
        if (count === hits.length) hits = grown(hits);
        hits[count++] = literal;
        hits[count++] = at + 1 + shift;
      }
    }
  }
  return hits.slice(0, count);
}

function byteClasses(literals) {
  const classes = new Uint16Array(256);
  let width = 1;
  for (const literal of literals) {
    for (const byte of literal) {
      if (classes[byte] === 0) classes[byte] = width++;
    }
  }
  return { classes, width };
}

/** Fill the cells where a literal does not go on, state by state from the shortest, and let each state end what its suffixes end. */
function complete(table, width, ends) {
  const suffix = new Int32Array(ends.length);
  const queue = [];
  for (let kind = 0; kind < width; kind++) {
    if (table[kind] !== 0) queue.push(table[kind]);
  }
  for (let head = 0; head < queue.length; head++) {
    const state = queue[head];
    ends[state].push(...ends[suffix[state]]);
    for (let kind = 0; kind < width; kind++) {
      const cell = state * width + kind;
      const beyond = table[suffix[state] * width + kind];
      if (table[cell] === 0) {
        table[cell] = beyond;
      } else {
        suffix[table[cell]] = beyond;
        queue.push(table[cell]);
      }
    }
  }
}

function grown(hits) {
  const larger = new Int32Array(2 * hits.length);
  larger.set(hits);
  return larger;
}

/** The same for Python: its buffers are scanned where they lie. */
export const forPython = {
  build: (literals) => build(literals.toJs()),
  scan(automaton, view, shift, mask) {
    const buffer = view.getBuffer("u8");
    try {
      return scan(automaton, buffer.data, shift, mask?.toJs() ?? null);
    } finally {
      buffer.release();
    }
  },
};
