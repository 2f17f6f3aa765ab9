import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/** The unsent input of the form for a new run. */
export interface RunInputDraft {
  /** The text in the field for the message. */
  readonly text: string;
  readonly input: JsonRecord;
  /** The id of the assistant that the user has chosen; undefined if the user has not chosen one. */
  readonly assistant?: string | undefined;
  /** Whether the user enters the input as JSON. */
  readonly isJson: boolean;
}

/**
 * The key in the session storage under which the drafts are stored, as a list of pairs of a thread's id and its draft.
 */
const KEY = "heddle.drafts";
/** The largest number of drafts. If there are more, the oldest are removed. */
const MAX_DRAFTS = 20;
/**
 * The largest number of characters of a draft as JSON. Longer drafts are not stored, because the session storage is
 * small.
 */
const MAX_CHARACTERS = 100_000;

export const EMPTY_RUN_DRAFT: RunInputDraft = { text: "", input: {}, isJson: false };

function readDrafts(): readonly (readonly [thread: string, draft: RunInputDraft])[] {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(stored) ? (stored as (readonly [string, RunInputDraft])[]) : [];
  } catch {
    return [];
  }
}

/** Returns the draft that this browser tab has stored for a thread, or an empty one. */
export function loadRunDraft(thread: string): RunInputDraft {
  const draft = readDrafts().find(([id]) => id === thread)?.[1];
  return draft !== undefined && isJsonRecord(draft.input) ? draft : EMPTY_RUN_DRAFT;
}

export function saveRunDraft(thread: string, draft: RunInputDraft): void {
  const others = readDrafts().filter(([id]) => id !== thread);
  const isEmpty = draft.text === "" && Object.keys(draft.input).length === 0;
  const isKept = !isEmpty && JSON.stringify(draft).length <= MAX_CHARACTERS;
  const drafts = isKept ? [...others, [thread, draft] as const].slice(-MAX_DRAFTS) : others;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(drafts));
  } catch {
    // The session storage is full or disabled, so the draft is not stored.
  }
}

/** Removes all drafts of this browser tab. Called at a sign-out, because another user may sign in next. */
export const forgetRunDrafts = (): void => sessionStorage.removeItem(KEY);
