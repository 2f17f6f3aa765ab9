import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { JsonSchema } from "../api/records.ts";
import { type FormError, validateFormValue } from "./form-schema.ts";

/** The validation state of a form, passed to its fields. */
export interface FormValidation {
  readonly root: JsonSchema;
  readonly errors: ReadonlyMap<string, FormError>;
  /** Whether the user has tried to submit the form. Missing values are shown only after that. */
  readonly isSubmitted: boolean;
  /**
   * Reports that the text of the field at the path `at` cannot be parsed, so that the form's value does not contain it.
   * `why`: the reason, or null once the text can be parsed.
   */
  readonly onUnread: (at: string, why: string | null) => void;
}

interface FormValidationState extends FormValidation {
  /** Returns whether the form is valid. From now on, missing values are shown as errors. */
  validate(): boolean;
  /** Forgets the errors of unparsable texts, and no longer shows missing values as errors. */
  clear(): void;
}

const NONE: ReadonlyMap<string, string> = new Map();
const NOTHING_REFUSED: ReadonlyMap<string, { readonly text: string }> = new Map();
const ANYTHING: JsonSchema = {};

/**
 * Validates a form's value against a schema; null accepts any value. `refused`: errors that the server has reported, by
 * field path. They are shown, but do not make the form invalid.
 */
export function useFormValidation(
  schema: JsonSchema | null,
  value: unknown,
  refused: ReadonlyMap<string, { readonly text: string }> = NOTHING_REFUSED,
): FormValidationState {
  const [unread, setUnread] = useState(NONE);
  const [isSubmitted, setSubmitted] = useState(false);
  const root = schema ?? ANYTHING;
  const errors = useMemo(() => {
    const all = validateFormValue(root, value).map((fault) => [fault.at, fault] as const);
    const texts = [...unread].map(([at, text]) => [at, { at, text, isMissing: false }] as const);
    return new Map([...all, ...texts]);
  }, [root, value, unread]);
  const shown = useMemo(() => {
    const told = [...refused].map(([at, { text }]) => [at, { at, text, isMissing: false }] as const);
    return told.length === 0 ? errors : new Map([...told, ...errors]);
  }, [errors, refused]);
  return {
    root,
    errors: shown,
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
 * Calls `report` after a rendering with changed `inputs`, before the browser handles the next event. With `useEffect`,
 * a key press could come first and send the previous answer.
 */
export const useReportBeforeNextEvent = (report: () => void, inputs: readonly unknown[]): void =>
  useLayoutEffect(report, [...inputs]);

/** Returns the paths of missing required values. The form's whole value is called `the answer`. */
export const missingFieldPaths = (errors: Iterable<FormError>): readonly string[] =>
  [...errors].filter(({ isMissing }) => isMissing).map(({ at }) => (at === "" ? "the answer" : at));
