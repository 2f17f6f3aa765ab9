import type { ComponentChildren } from "preact";
import { LoadFailure } from "./empty-state.tsx";
import type { Submit } from "./use-submit.ts";

interface FooterProps {
  readonly submit: Submit;
  /** The words of the button that sends the form. */
  readonly words: string;
  /** Whether there is nothing to send, because no field was changed. */
  readonly isUnchanged?: boolean;
  /** Called when the user leaves the form by its cancel button; absent: there is no such button. */
  readonly onCancel?: () => void;
  /** Further buttons of the form. */
  readonly children?: ComponentChildren;
}

/** The end of a form: why the last attempt failed, and the buttons. */
export function FormFooter({ submit, words, isUnchanged = false, onCancel, children }: FooterProps) {
  return (
    <>
      {submit.error !== null && <LoadFailure text={submit.error} />}
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
