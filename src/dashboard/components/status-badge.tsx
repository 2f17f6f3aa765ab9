interface StatusProps {
  readonly of: string;
  /** The label, if it differs from the status. */
  readonly words?: string | undefined;
  readonly small?: boolean;
}

/** A status as colour and text. */
export function StatusBadge({ of, words = of, small = false }: StatusProps) {
  return (
    <span class={`status ${of} ${small ? "small" : ""}`}>
      <span class="dot" aria-hidden="true" />
      {words}
    </span>
  );
}
