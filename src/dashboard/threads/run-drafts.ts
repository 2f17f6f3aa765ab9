import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { showLastingNotice } from "../app/notices.ts";
import { isUnloadGuarded } from "../app/page-location.ts";
import { idSuffix } from "../components/one-line-text.ts";
import { StoredText } from "../stored-text.ts";

/** The unsent input of the form for a new run. */
export interface RunInputDraft {
  /** The text in the field for the message. */
  readonly text: string;
  readonly input: JsonRecord;
  /**
   * The text that the user has typed as JSON; undefined if there is none. If the text is invalid, `input` is its last
   * valid value, or what the user has entered in fields since.
   */
  readonly json?: string | undefined;
  /** The id of the assistant that the user has chosen; undefined if the user has not chosen one. */
  readonly assistant?: string | undefined;
  /** Whether the user enters the input as JSON. */
  readonly isJson: boolean;
}

/**
 * A draft that is stored: the key of its form, and when it was last changed, in epoch milliseconds. The time is
 * undefined if an earlier version of the page has stored the draft.
 */
type StoredDraft = readonly [key: string, draft: RunInputDraft, changedAt?: number];

/** The drafts of this browser tab, sorted by their last change, the oldest first. */
const storedDrafts = new StoredText("heddle.drafts", { keptFor: "tab", isPrivate: true });
const MAX_DRAFTS = 200;
const MAX_AGE_DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1_000;
/**
 * The largest number of characters of a draft as JSON. Longer drafts are not stored, because the session storage is
 * small.
 */
const MAX_CHARACTERS = 100_000;
/** The largest number of characters of all drafts together: less than half of what browsers store. */
const MAX_TOTAL_CHARACTERS = 2_000_000;

export const EMPTY_RUN_DRAFT: RunInputDraft = { text: "", input: {}, isJson: false };

function readDrafts(): readonly StoredDraft[] {
  try {
    const stored = JSON.parse(storedDrafts.read() ?? "[]") as unknown;
    return Array.isArray(stored) ? stored.filter(isStoredDraft) : [];
  } catch {
    return [];
  }
}

/** Returns whether a stored value is a draft. Pages of other programs on this origin can write to the same storage. */
function isStoredDraft(value: unknown): value is StoredDraft {
  if (!Array.isArray(value)) return false;
  const [key, draft, changedAt] = value as readonly unknown[];
  if (typeof key !== "string" || !isJsonRecord(draft) || !isJsonRecord(draft["input"])) return false;
  const isOptional = (one: unknown, type: string) => one === undefined || typeof one === type;
  return (
    typeof draft["text"] === "string" &&
    isOptional(draft["json"], "string") &&
    isOptional(draft["assistant"], "string") &&
    isOptional(changedAt, "number")
  );
}

const NEW_THREAD = "new ";

/** Returns the key of the draft for a new thread. `graph`: the graph with which the form was opened. */
export const newThreadDraftKey = (graph: string | null | undefined): string => `${NEW_THREAD}${graph ?? ""}`;

/**
 * Returns the draft that this browser tab has stored for a form, or an empty one. `key`: a thread's id, or {@link
 * newThreadDraftKey}.
 */
export function loadRunDraft(key: string): RunInputDraft {
  return readDrafts().find(([one]) => one === key)?.[1] ?? EMPTY_RUN_DRAFT;
}

/**
 * How a draft is kept. `stored`: in the browser's storage. `memory`: until the page is closed or reloaded, because the
 * storage is full or disabled. `too-large`: not at all.
 */
export type DraftPersistence = "stored" | "memory" | "too-large";

/**
 * Stores a draft, or removes it if it is empty. If there are then too many drafts, removes the oldest, and tells the
 * user.
 */
export function saveRunDraft(key: string, draft: RunInputDraft): DraftPersistence {
  const others = readDrafts().filter(([one]) => one !== key);
  const isEmpty = draft.text === "" && draft.json === undefined && Object.keys(draft.input).length === 0;
  const isSmall = JSON.stringify(draft).length <= MAX_CHARACTERS;
  const drafts = !isEmpty && isSmall ? withoutOldest([...others, [key, draft, Date.now()]]) : others;
  const isStored = storedDrafts.write(JSON.stringify(drafts));
  // The form does not register this listener, because the draft stays in memory when the user leaves the form, but not the
  // page.
  if (isStored || drafts.length === 0) removeEventListener("beforeunload", confirmUnload);
  else addEventListener("beforeunload", confirmUnload);
  if (isEmpty) return "stored";
  return isSmall ? (isStored ? "stored" : "memory") : "too-large";
}

/** Lets the browser ask before the page is closed or reloaded. Registered while drafts are kept in memory only. */
function confirmUnload(event: BeforeUnloadEvent): void {
  if (isUnloadGuarded()) event.preventDefault();
}

/** Returns the drafts that are kept, and tells the user of those that are not. */
function withoutOldest(drafts: readonly StoredDraft[]): readonly StoredDraft[] {
  const isYoung = ([, , changedAt]: StoredDraft) =>
    changedAt === undefined || Date.now() - changedAt <= MAX_AGE_DAYS * DAY_MS;
  const young = drafts.filter(isYoung);
  const some = young.slice(-MAX_DRAFTS);
  let characters = 0;
  // Removes all drafts up to the newest one that does not fit, although a smaller draft before it might fit.
  const tooLarge = some.findLastIndex((draft) => {
    characters += JSON.stringify(draft).length;
    return characters > MAX_TOTAL_CHARACTERS;
  });
  const kept = some.slice(tooLarge + 1);
  const lost = [
    lossText(
      drafts.filter((draft) => !isYoung(draft)),
      `because it was last changed more than ${MAX_AGE_DAYS} days ago`,
    ),
    lossText(young.slice(0, -some.length), `because at most ${MAX_DRAFTS} are kept`),
    lossText(some.slice(0, -kept.length), "because at most 2 MB are kept"),
  ].filter((text) => text !== null);
  if (lost.length > 0) showLastingNotice(lost.join(" "));
  return kept;
}

/** Returns a text that says which drafts were removed, and why; null if none was. */
function lossText(drafts: readonly StoredDraft[], why: string): string | null {
  if (drafts.length === 0) return null;
  const forms = drafts.map(([key]) =>
    key.startsWith(NEW_THREAD) ? "a new thread" : `thread …${idSuffix(key)}`,
  );
  return `Unsent input was removed, ${why}: that of ${new Intl.ListFormat("en-GB").format(forms)}.`;
}
