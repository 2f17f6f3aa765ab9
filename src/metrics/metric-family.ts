/** What tells one figure of a family from the others: `{ graph: "agent" }`. Their names MUST be few, and known before. */
export type Labels = { readonly [name: string]: string };

export type Sample = readonly [labels: Labels, value: number];

interface Named {
  readonly name: string;
  /** One sentence, for people. */
  readonly help: string;
}

/** Numbers that are looked at when somebody asks: nothing is told while they change. */
export interface Numbers extends Named {
  /** A counter only goes up, from 0 at the start. */
  readonly type: "counter" | "gauge";
  readonly labels?: readonly string[];
  /** A number, or some with labels. Undefined: there is none, and none is told. */
  read(): Reading | Promise<Reading>;
}

export type Reading = number | readonly Sample[] | undefined;

/** How often values were of which size. */
export interface Distribution extends Named {
  readonly type: "histogram";
  /** Upper bounds, growing. */
  readonly buckets: readonly number[];
  /** Somebody looks at it: from now on `observe` is to be told of values. It may be called again, with the same. */
  look(observe: (value: number) => void): void;
}

export type Family = Numbers | Distribution;

type Read = Numbers["read"];

export function counter(name: string, help: string, read: Read, ...labels: readonly string[]): Numbers {
  return { name, help, type: "counter", labels, read };
}

export function gauge(name: string, help: string, read: Read, ...labels: readonly string[]): Numbers {
  return { name, help, type: "gauge", labels, read };
}
