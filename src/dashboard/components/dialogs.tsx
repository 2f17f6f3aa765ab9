import { type ComponentChildren, createRef } from "preact";
import { useEffect } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

/** A modal dialog. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const dialog = createRef<HTMLDialogElement>();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={wide ? "wide" : ""} aria-labelledby="dialog-title" onClose={onClose}>
      <header class="bar">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  /** The label of the button that does nothing. Default: "Keep". */
  readonly no?: string;
  readonly onYes: () => void;
  readonly onClose: () => void;
}

/** Asks for confirmation before data is lost, or much is started. */
export function Confirm({ title, text, yes, no = "Keep", onYes, onClose }: ConfirmProps) {
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
