/** Numbers and times as texts. Times of events are microseconds since 1970, in UTC. */

/** A count or a rate; "…" where it is not known yet. */
export function number(value, digits = 0) {
  if (value === null || value === undefined) return "…";
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? Math.max(1, digits) : digits });
}

/** A time of an event. */
export function time(us) {
  if (us === null || us === undefined) return "–";
  const text = new Date(us / 1000);
  return Number.isNaN(text.getTime()) ? `${us} µs` : text.toISOString().replace("T", " ").replace("Z", "");
}

/** A duration in seconds, as a person says it. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 120) return `${value.toFixed(size < 10 ? 1 : 0)} s`;
  if (size < 7200) return `${Math.round(value / 60)} min`;
  if (size < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400).toLocaleString("en")} days`;
}

/** The attributes of an event. */
export function data(values) {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${typeof value === "string" ? JSON.stringify(value) : value}`).join("  ");
}

/** "1 rule", "2 rules". */
export function counted(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** An amount of memory; "–" where it is not known. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB"];
  let size = value, unit = 0;
  while (size >= 1000 && unit < units.length - 1) { size /= 1000; unit += 1; }
  return `${number(size)} ${units[unit]}`;
}
