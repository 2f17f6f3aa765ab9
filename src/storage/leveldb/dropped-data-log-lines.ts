/** A log line in which LevelDB says that it has dropped unreadable data. */
export interface DroppedDataLine {
  /** The time as LevelDB writes it. It can be sorted as text. */
  readonly at: string;
  readonly line: string;
}

/**
 * The lines about dropped bytes in LevelDB's text logs, oldest first. `LOG` is from the last opening of the database, `LOG.old` from the
 * opening before.
 */
export function droppedDataLines(texts: readonly string[]): readonly DroppedDataLine[] {
  const found = texts.flatMap((text) =>
    text.split("\n").filter((line) => /: dropping \d+ bytes; /.test(line)),
  );
  return found
    .map((line) => ({ at: line.split(" ", 1)[0] ?? "", line: line.slice(line.indexOf(" ") + 1) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : 1));
}
