/** A line in which LevelDB says that it has left out what it could not read. */
export interface Dropped {
  /** As LevelDB writes it: sorts as text. */
  readonly at: string;
  readonly line: string;
}

/** Lines of LevelDB's own log (`LOG`, and `LOG.old` of the opening before) that tell of dropped bytes, oldest first. */
export function readDropped(texts: readonly string[]): readonly Dropped[] {
  const found = texts.flatMap((text) =>
    text.split("\n").filter((line) => /: dropping \d+ bytes; /.test(line)),
  );
  return found
    .map((line) => ({ at: line.split(" ", 1)[0] ?? "", line: line.slice(line.indexOf(" ") + 1) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : 1));
}
