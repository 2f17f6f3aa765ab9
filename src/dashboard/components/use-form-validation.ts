import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { JsonSchema } from "../api/records.ts";
import { type FormError, validateFormValue } from "./form-schema.ts";

/** The validation state of a form, for its fields to show. */
export interface FormValidation {
  readonly root: JsonSchema;
  readonly errors: ReadonlyMap<string, FormError>;
  /** Whether the user has tried to submit the form: missing values are shown from then on. */
  readonly isSubmitted: boolean;
  /** Reports a text that cannot be parsed and is therefore not in the value; null: the text is valid again. */
  readonly onUnread: (at: string, why: string | null) => void;
}

interface FormValidationState extends FormValidation {
  /** Returns whether the form is valid. Missing values are shown from now on. */
  validate(): boolean;
  /** Resets the form's validation. */
  clear(): void;
}

const NONE: ReadonlyMap<string, string> = new Map();
const ANYTHING: JsonSchema = {};

/** Validates input against a schema; null: anything is valid. */
export function useFormValidation(schema: JsonSchema | null, value: unknown): FormValidationState {
  const [unread, setUnread] = useState(NONE);
  const [isSubmitted, setSubmitted] = useState(false);
  const root = schema ?? ANYTHING;
  const errors = useMemo(() => {
    const all = validateFormValue(root, value).map((fault) => [fault.at, fault] as const);
    const texts = [...unread].map(([at, text]) => [at, { at, text, isMissing: false }] as const);
    return new Map([...all, ...texts]);
  }, [root, value, unread]);
  return {
    root,
    errors,
    isSubmitted,
    onUnread(at, why) {
      setUnread((before) => {
        if (why === (before.get(at) ?? null)) return before;
        const next = new Map(before);
        if (why === null) next.delete(at);
        else next.set(at, why);
        return next;
      });
    },
    validate() {
      setSubmitted(true);
      return errors.size === 0;
    },
    clear() {
      setUnread(NONE);
      setSubmitted(false);
    },
  };
}

/**
 * Calls `report` after each rendering with changed `inputs`, before the browser handles the next event. An effect after
 * the next frame would be too late: a key press could come first and send the earlier answer.
 */
export const useReportBeforeNextEvent = (report: () => void, inputs: readonly unknown[]): void =>
  useLayoutEffect(report, [...inputs]);

/** Returns the names of required values that are missing. */
export const missingValues = (errors: Iterable<FormError>): readonly string[] =>
  [...errors].filter(({ isMissing }) => isMissing).map(({ at }) => (at === "" ? "the answer" : at));
