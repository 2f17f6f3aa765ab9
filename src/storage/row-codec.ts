/** The form in which a kind of record is stored: its members' values in a fixed order, without their names. */
export interface Columns<T> {
  /** `value`: what stands in the row in place of the record's own member of that name. */
  row<K extends keyof T & string>(record: Omit<T, K>, name?: K, value?: T[K]): unknown[];
  record(row: unknown): T;
}

/**
 * Names were a third of what a run stored, and more of what encoding it cost. `names` MUST name every member of `T`, which
 * the compiler checks, and their order MUST NOT change: new ones go to the end. `spelled`: the row of a record that is stored
 * often, the same members in the same order; looked up by name they cost a microsecond.
 */
export function columns<T extends object>() {
  return <const N extends readonly (keyof T & string)[]>(
    names: [Exclude<keyof T, N[number]>] extends [never] ? N : never,
    spelled?: (record: T) => unknown[],
  ): Columns<T> => {
    const own: readonly (keyof T & string)[] = names;
    const rowOf = spelled ?? ((record: T) => own.map((name) => record[name] ?? null));
    // Filling in what is there is several times faster than adding it.
    const blank = Object.fromEntries(own.map((name) => [name, null]));
    return {
      row(record, name, value) {
        const row = rowOf(record as T);
        if (name !== undefined) row[own.indexOf(name)] = value;
        return row;
      },
      record(row) {
        const record: { [name: string]: unknown } = { ...blank };
        for (let i = 0; i < own.length; i++) {
          // Null in a row that is older than the column.
          record[own[i] as string] = (row as readonly unknown[])[i] ?? null;
        }
        return record as T;
      },
    };
  };
}
