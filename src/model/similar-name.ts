/**
 * The known name that was probably meant: a name that begins with `name`, or that is the beginning of `name`; else the
 * most similar name, if its edit distance from `name` is at most half the length of `name`. Undefined if no known name
 * is similar enough.
 */
export function similarName(name: string, known: readonly string[]): string | undefined {
  const candidates = known.map((other) => {
    const distance =
      name.startsWith(other) || other.startsWith(name) ? 0 : editDistance(name, other) / name.length;
    return { other, distance };
  });
  const [nearest] = candidates.toSorted((a, b) => a.distance - b.distance);
  return nearest !== undefined && nearest.distance <= 0.5 ? nearest.other : undefined;
}

/** Levenshtein's distance: how many characters have to be inserted, deleted or replaced. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (let column = 0; column < to.length; column++) {
      const replaced = (row[column] ?? 0) + (letter === to[column] ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
