import type { ComponentChildren } from "preact";

/** A message in place of content. */
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

/**
 * Shown while data is read for the first time. `isPadded`: whether the text needs padding, because it stands alone on a
 * page.
 */
export function Loading({ isPadded = false }: { readonly isPadded?: boolean }) {
  return (
    <p class={isPadded ? "dim pad" : "dim"} aria-busy="true">
      Loading…
    </p>
  );
}

export function ErrorAlert({ text, onRetry }: { readonly text: string; readonly onRetry?: () => void }) {
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
