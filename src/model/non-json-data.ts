/**
 * An instance of a class that the LangGraph engine can restore (a LangChain message, an error, a `Send`), as data. Its
 * members are those of the instance's JSON form. The name of the class is a private field, so a copy by spread is plain
 * data. A ClassInstance is shared and MUST NOT be changed.
 */
export class ClassInstance {
  readonly #kind: string;

  constructor(kind: string, members: object) {
    this.#kind = kind;
    Object.assign(this, members);
  }

  static kindOf(instance: ClassInstance): string {
    return instance.#kind;
  }
}

/** The kinds of {@link NonJsonValue}, each with the type of its data. */
export interface NonJsonDataByKind {
  /** `undefined` where JSON needs a value, such as an item of a list. */
  readonly undefined: null;
  /** A number that JSON cannot express: `NaN`, `Infinity`, `-Infinity`. */
  readonly number: string;
  readonly bigint: string;
  /** Epoch milliseconds; null for an invalid date. */
  readonly date: number | null;
  readonly regexp: readonly [source: string, flags: string];
  readonly map: readonly (readonly [key: unknown, value: unknown])[];
  readonly set: readonly unknown[];
  /** The name of a typed array's class, and its bytes in base64. */
  readonly bytes: readonly [kind: string, base64: string];
}

export type NonJsonContent = {
  [K in keyof NonJsonDataByKind]: { readonly kind: K; readonly data: NonJsonDataByKind[K] };
}[keyof NonJsonDataByKind];

/**
 * A value that JSON cannot express and that is not an object with members, such as a Date or a Map. `toJSON` gives the
 * nearest JSON form.
 */
export class NonJsonValue {
  readonly #of: NonJsonContent;

  constructor(of: NonJsonContent) {
    this.#of = of;
  }

  static of(instance: NonJsonValue): NonJsonContent {
    return instance.#of;
  }

  toJSON(): unknown {
    const { kind, data } = this.#of;
    switch (kind) {
      case "undefined":
        return undefined;
      case "number":
        return null;
      case "bigint":
        return data;
      case "date":
        return data === null ? null : new Date(data).toISOString();
      case "regexp":
        return `/${data[0]}/${data[1]}`;
      case "map":
        return data.every(([key]) => typeof key === "string") ? Object.fromEntries(data) : data;
      case "set":
        return data;
      case "bytes":
        return data[1];
    }
  }
}
