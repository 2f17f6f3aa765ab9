import type { ComponentChildren } from "preact";
import { ErrorAlert } from "./empty-state.tsx";
import type { Submit } from "./use-submit.ts";

interface FooterProps {
  readonly submit: Submit;
  /** The label of the button that sends the form. */
  readonly words: string;
  /** Whether no field was changed, so that there is nothing to send. */
  readonly isUnchanged?: boolean;
  /** Called by the cancel button; if absent, there is no such button. */
  readonly onCancel?: () => void;
  /** Further buttons, shown before the others. */
  readonly children?: ComponentChildren;
}

/** The end of a form: the error of the last attempt to send it, and the buttons. */
export function FormFooter({ submit, words, isUnchanged = false, onCancel, children }: FooterProps) {
  return (
    <>
      {submit.error !== null && <ErrorAlert text={submit.error} />}
      <div class="bar end">
        {children}
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        <button class="primary" disabled={submit.isSending || isUnchanged}>
          {words}
        </button>
      </div>
    </>
  );
}
