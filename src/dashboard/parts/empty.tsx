import type { ComponentChildren } from "preact";

/** What is said where nothing is to be seen. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

export function Failure({ text, onRetry }: { readonly text: string; readonly onRetry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <span>{text}</span>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
