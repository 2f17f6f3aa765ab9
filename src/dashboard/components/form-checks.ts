import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { JsonSchema } from "../api/records.ts";
import { type FormError, formErrors } from "./form-schema.ts";

/** The validation state of a form, for its fields to show. */
export interface FormChecks {
  readonly root: JsonSchema;
  readonly faults: ReadonlyMap<string, FormError>;
  /** True after a submit attempt: missing values are shown from then on. */
  readonly isAsked: boolean;
  /** Reports a text that cannot be parsed and is therefore not in the value; null: the text is valid again. */
  readonly onUnread: (at: string, why: string | null) => void;
}

interface Checked extends FormChecks {
  /** Returns whether the form is valid. Missing values are shown from now on. */
  ask(): boolean;
  /** Resets the form's validation. */
  clear(): void;
}

const NONE: ReadonlyMap<string, string> = new Map();
const ANYTHING: JsonSchema = {};

/** Validates input against a schema; null: anything is valid. */
export function useChecks(schema: JsonSchema | null, value: unknown): Checked {
  const [unread, setUnread] = useState(NONE);
  const [isAsked, setAsked] = useState(false);
  const root = schema ?? ANYTHING;
  const faults = useMemo(() => {
    const all = formErrors(root, value).map((fault) => [fault.at, fault] as const);
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

/**
 * Calls `report` when `inputs` have changed, in the same turn as the input. An effect after the next frame would be too
 * late: a key press may come before it, and would send the earlier answer.
 */
export const useReport = (report: () => void, inputs: readonly unknown[]): void =>
  useLayoutEffect(report, [...inputs]);

/** Returns the names of required values that are missing. */
export const missingIn = (faults: Iterable<FormError>): readonly string[] =>
  [...faults].filter(({ isMissing }) => isMissing).map(({ at }) => (at === "" ? "the answer" : at));
