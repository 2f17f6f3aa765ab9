import { useMemo, useState } from "preact/hooks";
import type { Schema } from "../api/records.ts";
import { type Fault, faultsOf } from "./schema.ts";

/** What is wrong in a form, for its fields to tell. */
export interface Checks {
  readonly root: Schema;
  readonly faults: ReadonlyMap<string, Fault>;
  /** What is missing is told once somebody wanted to go on without it. */
  readonly isAsked: boolean;
  /** A text stands there that cannot be what is wanted, and is not in the value; null: no more. */
  readonly onUnread: (at: string, why: string | null) => void;
}

interface Checked extends Checks {
  /** Whether all is well; from now on what is missing is told. */
  ask(): boolean;
  /** The form is begun anew. */
  clear(): void;
}

const NONE: ReadonlyMap<string, string> = new Map();
const ANYTHING: Schema = {};

/** Checks what was entered against a schema; null: it may be anything. */
export function useChecks(schema: Schema | null, value: unknown): Checked {
  const [unread, setUnread] = useState(NONE);
  const [isAsked, setAsked] = useState(false);
  const root = schema ?? ANYTHING;
  const faults = useMemo(() => {
    const all = faultsOf(root, value).map((fault) => [fault.at, fault] as const);
    const texts = [...unread].map(([at, text]) => [at, { at, text, isMissing: false }] as const);
    return new Map([...all, ...texts]);
  }, [root, value, unread]);
  return {
    root,
    faults,
    isAsked,
    onUnread(at, why) {
      setUnread((before) => {
        if (why === (before.get(at) ?? null)) return before;
        const next = new Map(before);
        if (why === null) next.delete(at);
        else next.set(at, why);
        return next;
      });
    },
    ask() {
      setAsked(true);
      return faults.size === 0;
    },
    clear() {
      setUnread(NONE);
      setAsked(false);
    },
  };
}

/** The names of what has to be given and is not. */
export const missingIn = (faults: Iterable<Fault>): readonly string[] =>
  [...faults].filter(({ isMissing }) => isMissing).map(({ at }) => (at === "" ? "the answer" : at));
