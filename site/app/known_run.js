// What a diagnosis knows of its run, as the form of "Will it fit?" takes it.

const GIB = 2 ** 30;
const HIDDEN = 0.975; // of the memory in the name of a card a program sees about so much

/** Return `{name: {value, place}}` of the JSON of a diagnosis; `cards` are those of choices.json. Empty where neither model nor card is known. */
export function knownRun({ training, estimate, incidents, server_memory: servers }, cards) {
  const config = training?.config ?? {};
  const server = servers?.[0];
  const known = {};
  const tell = (name, value, place = null) => {
    if (value != null && value !== "" && !known[name]) known[name] = { value, place };
  };
  for (const [name, { value, file, line }] of Object.entries(config.settings ?? {})) tell(name, value, file && line ? `${file}:${line}` : null);
  tell("model", estimate?.model);
  tell("framework", config.framework ?? training?.framework);
  tell("gpu", estimate?.card?.name || sizeOf(incidents?.[0]?.root.fields.total_bytes ?? server?.total_bytes, cards));
  tell("gpus", estimate?.gpus > 1 ? estimate.gpus : null);
  if (server) tell("method", "serve");
  return known.model || known.gpu ? known : {};
}

/** The size that a card of so many bytes is sold with. */
function sizeOf(bytes, cards) {
  if (!bytes || !cards.length) return null;
  const sizes = [...new Set(cards.map(([, size]) => size))];
  const apart = (size) => Math.abs(size * HIDDEN - bytes / GIB);
  return `${sizes.reduce((best, size) => (apart(size) < apart(best) ? size : best))}GB`;
}
