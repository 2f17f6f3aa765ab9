import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
  /** Whether the user has entered something that is lost with the dialog: Escape and its cross then ask first. */
  readonly isEdited?: boolean;
}

/** Shows a dialog as a modal one while it is in the page. `isRemoved`: whether it was closed because it left the page. */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isRemoved = useRef(false);
  // A layout effect, because the cleanup of others runs when the dialog is no longer in the page.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => {
      isRemoved.current = true;
      // Only closing gives the focus back to the element that had it; removing the dialog does not.
      current?.close();
    };
  }, []);
  return { dialog, isRemoved };
}

/** A modal dialog. */
export function Dialog({ title, onClose, children, wide = false, isEdited = false }: DialogProps) {
  const id = useId();
  const [isAsking, setAsking] = useState(false);
  const { dialog, isRemoved } = useModal();
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        if (!isEdited) return;
        event.preventDefault();
        setAsking(true);
      }}
      onClose={() => !isRemoved.current && onClose()}
    >
      <header class="bar">
        <h2 id={id}>{title}</h2>
        <button
          type="button"
          class="quiet"
          aria-label="Close"
          onClick={() => (isEdited ? setAsking(true) : dialog.current?.close())}
        >
          ✕
        </button>
      </header>
      {children}
      {isAsking && (
        <Confirm
          title="Close without saving?"
          text="Unsaved input will be lost."
          yes="Discard"
          no="Keep editing"
          onYes={onClose}
          onClose={() => setAsking(false)}
        />
      )}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  /** The label of the button that does nothing. Default: "Cancel". */
  readonly no?: string;
  readonly onYes: () => unknown;
  readonly onClose: () => void;
}

/** Asks for confirmation before data is lost, or much is started. */
export function Confirm({ title, text, yes, no = "Cancel", onYes, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="bar end">
        <button type="button" onClick={onClose}>
          {no}
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            onYes();
            onClose();
          }}
        >
          {yes}
        </button>
      </div>
    </Dialog>
  );
}
