/** Returns the names of the members of `after` whose values differ from those in `before`. */
export const differingMembers = (before: object, after: object): readonly string[] => {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old.get(name)))
    .map(([name]) => name);
};
