import { Component, type ComponentChildren } from "preact";
import { EmptyState } from "./empty-state.tsx";

interface BoundaryProps {
  /** The name of the contents, for the error message. */
  readonly name: string;
  readonly children: ComponentChildren;
  /** Shown instead of the error message. */
  readonly fallback?: ComponentChildren;
}

/** Confines a rendering error to one part of the page. Without it the whole page would be empty. */
export class ErrorBoundary extends Component<BoundaryProps, { readonly failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override render({ name, children, fallback }: BoundaryProps) {
    if (!this.state.failed) return children;
    if (fallback !== undefined) return fallback;
    return (
      <EmptyState title={`${name} cannot be shown.`}>
        <p role="alert">Rendering failed.</p>
        <button type="button" onClick={() => this.setState({ failed: false })}>
          Try again
        </button>
      </EmptyState>
    );
  }
}
