import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/** The input of a run that the user has not started yet. */
export interface RunInputDraft {
  /** The text of the message. */
  readonly text: string;
  readonly input: JsonRecord;
  /** The assistant that the user has chosen; undefined: the thread's own. */
  readonly assistant?: string | undefined;
  /** Whether the user enters the input as JSON. */
  readonly isJson: boolean;
}

/** The key in the session storage under which the drafts are stored, as pairs of a thread's id and its draft. */
const KEY = "heddle.drafts";
/** The largest number of drafts. The oldest are dropped. */
const MAX_DRAFTS = 20;
/** The most characters of a draft as JSON. A longer one is not kept, because the browser's storage is small. */
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

/** Returns the unsent input of the form for a new run on a thread, which this browser tab has stored; an empty draft if there is none. */
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
    // The storage is full, or switched off: the draft is not kept.
  }
}

/** Drops all drafts, as at a sign-out: another user may sign in. */
export const forgetRunDrafts = (): void => sessionStorage.removeItem(KEY);
