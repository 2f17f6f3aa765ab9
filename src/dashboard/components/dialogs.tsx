import type { ComponentChildren } from "preact";
import { ACTS_ONCE } from "../app/ignore-second-clicks.ts";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
  /** Whether the user has entered something that closing would lose. Escape and the button ✕ then ask first. */
  readonly isEdited?: boolean;
}

/**
 * Opens a `<dialog>` modally when the component is mounted, and closes it when the component is unmounted.
 * `isRemoved.current`: true if the dialog was closed because of the unmounting, false if the user closed it.
 */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isRemoved = useRef(false);
  // A layout effect, because the cleanups of other effects run after the dialog has left the page.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => {
      isRemoved.current = true;
      // Closing the dialog returns the focus to the element that had it before. Removing an open dialog does not.
      current?.close();
    };
  }, []);
  return { dialog, isRemoved };
}

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
        <ConfirmDialog
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

interface ConfirmDialogProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  /** The label of the button that closes the dialog without an action. Default: "Cancel". */
  readonly no?: string;
  readonly onYes: () => unknown;
  readonly onClose: () => void;
}

/** A dialog that asks for confirmation, for example before data is deleted. */
export function ConfirmDialog({ title, text, yes, no = "Cancel", onYes, onClose }: ConfirmDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="bar end">
        <button type="button" onClick={onClose}>
          {no}
        </button>
        <button
          {...ACTS_ONCE}
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
