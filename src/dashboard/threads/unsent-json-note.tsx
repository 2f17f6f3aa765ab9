interface UnsentJsonProps {
  /** What is wrong with the text, such as `is not valid`. */
  readonly fault: string;
  /** What is sent in place of the text, such as `these fields are`. */
  readonly sent: string;
  /** Shows the text again. */
  readonly onBack: () => void;
  readonly onDiscard: () => void;
}

/** Says that a form holds a text that the user typed as JSON, and that it is not sent, because it is wrong. */
export function UnsentJsonNote({ fault, sent, onBack, onDiscard }: UnsentJsonProps) {
  return (
    <div class="note" role="status">
      <span>
        The text that you typed as JSON {fault}. It is kept, but not sent: {sent}.
      </span>
      <span class="bar">
        <button type="button" onClick={onBack}>
          Back to the JSON text
        </button>
        <button type="button" class="quiet" onClick={onDiscard}>
          Discard the JSON text
        </button>
      </span>
    </div>
  );
}
