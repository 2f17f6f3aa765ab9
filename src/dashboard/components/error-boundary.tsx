import { Component, type ComponentChildren } from "preact";
import { EmptyState } from "./empty-state.tsx";

interface BoundaryProps {
  /** The subject of the error message, such as `This page`. */
  readonly name: string;
  readonly children: ComponentChildren;
  /** Shown instead of the error message. */
  readonly fallback?: ComponentChildren;
}

/**
 * Replaces its children by an error message if rendering them fails. Without it, the whole page would become empty.
 */
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
