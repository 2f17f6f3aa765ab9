/** Converts records to their stored form, a row: the values in a fixed order, without names. */
export interface RecordRowConverter<T> {
  /** Converts a record to a row. If `name` is given, `value` is stored instead of this member of the record. */
  row<K extends keyof T & string>(record: Omit<T, K>, name?: K, value?: T[K]): unknown[];
  record(row: unknown): T;
}

/**
 * Makes the converter of one type of records, by listing the columns of a row. The names of members are not stored: they took a third of a
 * run's stored size, and more than a third of its encoding time. `names` MUST list every member of `T`, which the compiler checks. The
 * order MUST NOT change: new names are added at the end. `spelled` is for records that are stored often. It MUST return the values of all
 * members in the order of `names`, and reads each member directly (`record.id`): looking up all members by name takes a microsecond.
 */
export function createRecordRowConverter<T extends object>() {
  return <const N extends readonly (keyof T & string)[]>(
    names: [Exclude<keyof T, N[number]>] extends [never] ? N : never,
    spelled?: (record: T) => unknown[],
  ): RecordRowConverter<T> => {
    const own: readonly (keyof T & string)[] = names;
    const rowOf = spelled ?? ((record: T) => own.map((name) => record[name] ?? null));
    // A record begins as a copy of this object, because overwriting existing members is several times faster than adding them.
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
          // A row that was stored before a column was added has no value for that column. The member is then null.
          record[own[i] as string] = (row as readonly unknown[])[i] ?? null;
        }
        return record as T;
      },
    };
  };
}
