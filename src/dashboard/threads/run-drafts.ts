import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { StoredText } from "../stored-text.ts";

/** The unsent input of the form for a new run. */
export interface RunInputDraft {
  /** The text in the field for the message. */
  readonly text: string;
  readonly input: JsonRecord;
  /**
   * The text that the user has typed as JSON; undefined if there is none. If it is not valid, `input` is its last valid
   * value, or what the user has entered in fields since.
   */
  readonly json?: string | undefined;
  /** The id of the assistant that the user has chosen; undefined if the user has not chosen one. */
  readonly assistant?: string | undefined;
  /** Whether the user enters the input as JSON. */
  readonly isJson: boolean;
}

/** The drafts of this browser tab, as a list of pairs of a form's key and its draft. */
const storedDrafts = new StoredText("heddle.drafts", { keptFor: "tab", isPrivate: true });
/** The largest number of drafts. If there are more, the oldest are removed. */
const MAX_DRAFTS = 20;
/**
 * The largest number of characters of a draft as JSON. Longer drafts are not stored, because the session storage is
 * small.
 */
const MAX_CHARACTERS = 100_000;

export const EMPTY_RUN_DRAFT: RunInputDraft = { text: "", input: {}, isJson: false };

function readDrafts(): readonly (readonly [key: string, draft: RunInputDraft])[] {
  try {
    const stored = JSON.parse(storedDrafts.read() ?? "[]") as unknown;
    return Array.isArray(stored) ? (stored as (readonly [string, RunInputDraft])[]) : [];
  } catch {
    return [];
  }
}

/** Returns the key of the draft for a new thread. `graph`: the graph with which the form was opened. */
export const newThreadDraftKey = (graph: string | null | undefined): string => `new ${graph ?? ""}`;

/**
 * Returns the draft that this browser tab has stored for a form, or an empty one. `key`: a thread's id, or {@link
 * newThreadDraftKey}.
 */
export function loadRunDraft(key: string): RunInputDraft {
  const draft = readDrafts().find(([one]) => one === key)?.[1];
  return draft !== undefined && isJsonRecord(draft.input) ? draft : EMPTY_RUN_DRAFT;
}

/** Stores a draft, or removes it if it is empty. Returns true if the form can be left without losing input. */
export function saveRunDraft(key: string, draft: RunInputDraft): boolean {
  const others = readDrafts().filter(([one]) => one !== key);
  const isEmpty = draft.text === "" && draft.json === undefined && Object.keys(draft.input).length === 0;
  const isSmall = JSON.stringify(draft).length <= MAX_CHARACTERS;
  const drafts = !isEmpty && isSmall ? [...others, [key, draft] as const].slice(-MAX_DRAFTS) : others;
  const isStored = storedDrafts.write(JSON.stringify(drafts));
  return isEmpty || (isSmall && isStored);
}
