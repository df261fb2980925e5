// Instants, durations and money as a person reads them.

const UTC = { timeZone: "UTC", hourCycle: "h23" };
const DAY = { weekday: "short", day: "numeric", month: "short" };
const CLOCK = { hour: "2-digit", minute: "2-digit" };

export function utc(instant) {
  return `${new Date(instant).toLocaleString("en-GB", { ...UTC, ...DAY, year: "numeric", ...CLOCK })} UTC`;
}

export function utcShort(instant) {
  return `${new Date(instant).toLocaleString("en-GB", { ...UTC, ...DAY, ...CLOCK })} UTC`;
}

// The reader's own clock, or null where it shows UTC anyway.
export function local(instant) {
  const moment = new Date(instant);
  if (moment.getTimezoneOffset() === 0) return null;
  return moment.toLocaleString(undefined, { ...DAY, ...CLOCK, timeZoneName: "short" });
}

export function duration(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return "less than a minute";
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function money(nanousd) {
  if (nanousd === 0) return "no cost";
  const dollars = nanousd / 1e9;
  return `$${dollars < 1 ? dollars.toLocaleString("en", { maximumSignificantDigits: 2 }) : dollars.toFixed(2)}`;
}

export function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

export const REASONS = {
  inaccurate: "Inaccurate",
  irrelevant: "Irrelevant",
  tone: "Wrong tone",
  incomplete: "Incomplete",
  too_late: "Too late",
  other: "Other",
};
