import { signal } from "@preact/signals";
import { KeyNeeded } from "../server.ts";

/** Somebody has to give a key before anything can be shown. */
export const isLocked = signal(false);

/** What went wrong last, told once; empty: nothing. */
export const notice = signal<{ readonly text: string; readonly bad: boolean } | null>(null);

export function tell(text: string, bad = false): void {
  notice.value = { text, bad };
}

/** Tells what went wrong; the lack of a key asks for one. */
export function failed(cause: unknown): void {
  if (cause instanceof KeyNeeded) isLocked.value = true;
  else if (!(cause instanceof DOMException && cause.name === "AbortError")) tell(reasonOf(cause), true);
}

export const reasonOf = (cause: unknown): string => {
  if (cause instanceof TypeError) return "The server cannot be reached.";
  return cause instanceof Error ? cause.message : String(cause);
};

/** Does something that a person asked for; false: it did not work, and why has been told. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  // What went wrong before is known by now.
  notice.value = null;
  try {
    await work();
    return true;
  } catch (cause) {
    failed(cause);
    return false;
  }
}
