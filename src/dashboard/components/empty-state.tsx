import type { ComponentChildren } from "preact";

/** A message in a place where there is nothing to show yet. */
export function EmptyState({
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

export function LoadFailure({ text, onRetry }: { readonly text: string; readonly onRetry?: () => void }) {
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
