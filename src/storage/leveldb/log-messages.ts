/** A log line in which LevelDB says that it has dropped unreadable data. */
export interface DroppedDataLine {
  /** The time as LevelDB writes it: sorts as text. */
  readonly at: string;
  readonly line: string;
}

/** The lines about dropped bytes in LevelDB's text logs (`LOG`, and `LOG.old` of the previous opening), oldest first. */
export function droppedDataLines(texts: readonly string[]): readonly DroppedDataLine[] {
  const found = texts.flatMap((text) =>
    text.split("\n").filter((line) => /: dropping \d+ bytes; /.test(line)),
  );
  return found
    .map((line) => ({ at: line.split(" ", 1)[0] ?? "", line: line.slice(line.indexOf(" ") + 1) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : 1));
}
