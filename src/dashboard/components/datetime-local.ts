/** Converts a timestamp to the value of a `datetime-local` field, which is in the browser's time zone. */
export function toDatetimeLocal(iso: string): string {
  const time = new Date(iso);
  // `toISOString` formats in UTC. Shifting the time by the offset of the time zone makes it format the local time.
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Converts the value of a `datetime-local` field to a timestamp. Returns an invalid value unchanged. */
export function fromDatetimeLocal(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}
