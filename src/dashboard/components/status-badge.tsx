interface StatusProps {
  readonly of: string;
  /** The text, if it differs from the status. */
  readonly words?: string | undefined;
  readonly small?: boolean;
}

/** Shows a status as a colour and a text. */
export function StatusBadge({ of, words = of, small = false }: StatusProps) {
  return (
    <span class={`status ${of} ${small ? "small" : ""}`}>
      <span class="dot" aria-hidden="true" />
      {words}
    </span>
  );
}
