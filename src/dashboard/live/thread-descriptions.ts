import { fetchThreadValues, getAssistantSchemas } from "../api/client.ts";
import type { JsonRecord, JsonSchema, ThreadRow } from "../api/records.ts";
import { simplifySchema } from "../components/form-schema.ts";
import { toOneLine } from "../components/one-line-text.ts";
import { isNotFound, isForbidden, isTransient } from "../api-errors.ts";
import { toChatMessage } from "./chat-messages.ts";

/** The largest number of threads whose descriptions are cached. */
const MAX_THREADS = 2_000;
/** The largest number of threads whose values one request reads. */
const MAX_PER_REQUEST = 1_000;
/** The largest number of state values in a description. */
const MAX_VALUES = 4;

/** What must be known of a thread to read its description. */
type DescribedThread = Pick<ThreadRow, "thread_id" | "metadata" | "status" | "updated_at">;

/** The values of a thread's state that make its description. */
interface DescriptionPaths {
  /** The path of each value, by a name. */
  readonly extract: { readonly [name: string]: string };
  /** The initial value of each, by the same name. A value that equals its initial value is left out. */
  readonly initial: { readonly [name: string]: unknown };
  /** Whether the description is the first message of a conversation. */
  readonly isChat: boolean;
}

const NO_PATHS: DescriptionPaths = { extract: {}, initial: {}, isChat: false };

/**
 * Short descriptions of threads: the beginning of the first message, or some values of the state. They are read only
 * for visible and for searched threads, and again after a thread has changed.
 */
export class ThreadDescriptions {
  readonly #onChange: () => void;
  readonly #known = new Map<string, { readonly at: string; readonly text: string }>();
  readonly #paths = new Map<string, Promise<DescriptionPaths>>();
  #wanted: readonly DescribedThread[] = [];
  #isReading = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  of({ thread_id: id }: Pick<DescribedThread, "thread_id">): string {
    return this.#known.get(id)?.text ?? "";
  }

  /** Returns whether the description of a thread is missing, because it could not be read. */
  isMissing(row: DescribedThread): boolean {
    return assistantOf(row) !== "" && !this.#known.has(row.thread_id);
  }

  /** Sets the visible rows, and reads their missing or outdated descriptions. */
  setVisibleRows(rows: readonly DescribedThread[]): void {
    this.#wanted = rows;
    if (!this.#isReading) void this.#readWanted();
  }

  /** Reads the missing or outdated descriptions of these rows, which may be invisible. */
  async read(rows: readonly DescribedThread[]): Promise<void> {
    const byAssistant = new Map<string, DescribedThread[]>();
    for (const row of rows.filter((one) => this.#isNew(one)))
      byAssistant.set(assistantOf(row), [...(byAssistant.get(assistantOf(row)) ?? []), row]);
    // The assistants of a graph have the same paths, so the values of their threads are read by one request.
    const byPaths = new Map<string, { readonly paths: DescriptionPaths; readonly rows: DescribedThread[] }>();
    const find = async ([assistant, theirs]: readonly [string, readonly DescribedThread[]]) => {
      const paths = await this.#pathsOf(assistant);
      if (paths === undefined) return;
      const key = JSON.stringify(paths);
      const group = byPaths.get(key) ?? { paths, rows: [] };
      group.rows.push(...theirs);
      byPaths.set(key, group);
    };
    await Promise.all([...byAssistant].map(find));
    await Promise.all([...byPaths.values()].map((group) => this.#readTexts(group.paths, group.rows)));
  }

  async #readWanted(): Promise<void> {
    this.#isReading = true;
    const rows = this.#wanted.filter((one) => this.#isNew(one));
    this.#wanted = [];
    await this.read(rows);
    this.#isReading = false;
    if (rows.length > 0) this.#onChange();
    if (this.#wanted.length > 0) void this.#readWanted();
  }

  #isNew(row: DescribedThread): boolean {
    const known = this.#known.get(row.thread_id);
    if (assistantOf(row) === "" || known?.at === row.updated_at) return false;
    // A thread with a run in progress changes all the time. Its description, if there is one, is not read again before
    // the run ends.
    return row.status !== "busy" || known === undefined;
  }

  /** Returns the paths for the threads of an assistant; undefined after an error that may be temporary. */
  async #pathsOf(assistant: string): Promise<DescriptionPaths | undefined> {
    const reading =
      this.#paths.get(assistant) ??
      getAssistantSchemas(assistant).then((all) => descriptionPaths(all.input_schema));
    this.#paths.set(assistant, reading);
    try {
      return await reading;
    } catch (cause) {
      // If the assistant was deleted, or the user may not read it, its threads get no description, and its schemas are
      // not requested again.
      if (isNotFound(cause) || isForbidden(cause)) this.#paths.set(assistant, Promise.resolve(NO_PATHS));
      else this.#paths.delete(assistant);
      return isTransient(cause) ? undefined : NO_PATHS;
    }
  }

  async #readTexts(paths: DescriptionPaths, rows: readonly DescribedThread[]): Promise<void> {
    let texts: ReadonlyMap<string, string> = new Map();
    try {
      if (Object.keys(paths.extract).length > 0) texts = await textsOf(paths, rows);
    } catch (cause) {
      // After a temporary error, the rows are not stored as known, so that the next call tries again.
      if (isTransient(cause)) return;
    }
    for (const { thread_id: id, updated_at: at } of rows) {
      this.#known.delete(id);
      this.#known.set(id, { at, text: texts.get(id) ?? "" });
    }
    const old = [...this.#known.keys()].slice(0, Math.max(0, this.#known.size - MAX_THREADS));
    for (const id of old) this.#known.delete(id);
  }
}

/** Reads the descriptions of threads by their ids, {@link MAX_PER_REQUEST} threads at a time. */
async function textsOf(
  paths: DescriptionPaths,
  rows: readonly DescribedThread[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (let from = 0; from < rows.length; from += MAX_PER_REQUEST) {
    const ids = rows.slice(from, from + MAX_PER_REQUEST).map(({ thread_id }) => thread_id);
    for (const { thread_id, extracted } of await fetchThreadValues(ids, paths.extract))
      texts.set(thread_id, descriptionText(paths, extracted));
  }
  return texts;
}

/** Returns the id of the assistant whose schema describes the thread's state; empty if the thread has had no run. */
const assistantOf = ({ metadata }: DescribedThread): string =>
  typeof metadata["assistant_id"] === "string" ? metadata["assistant_id"] : "";

/**
 * Returns the paths of the values that describe a thread with this input schema. Names that a path cannot contain are
 * left out.
 */
export function descriptionPaths(schema: JsonSchema | null): DescriptionPaths {
  const entries = Object.entries(schema?.properties ?? {}).filter(([name]) => !/[.[\]]/.test(name));
  const talk = entries.find(([name, one]) => one.langgraph_type === "messages" || name === "messages");
  if (talk !== undefined)
    return { extract: { said: `values.${talk[0]}[0].content` }, initial: {}, isChat: true };
  const simple = entries
    .map(([name, one]) => [name, simplifySchema(one, schema ?? one)] as const)
    .filter(([, { type, items, properties }]) =>
      type === undefined
        ? items === undefined && properties === undefined
        : type !== "array" && type !== "object",
    )
    .slice(0, MAX_VALUES);
  return {
    extract: Object.fromEntries(simple.map(([name]) => [name, `values.${name}`])),
    initial: Object.fromEntries(simple.map(([name, one]) => [name, one.default])),
    isChat: false,
  };
}

/** Returns the description of a thread: its first message, or those values that differ from their initial values. */
export function descriptionText(
  { initial, isChat: isTalk }: DescriptionPaths,
  extracted: JsonRecord,
): string {
  if (isTalk) return toOneLine(toChatMessage({ content: extracted["said"] }).text);
  const parts = Object.entries(extracted).filter(
    ([name, value]) =>
      value !== null && value !== "" && JSON.stringify(value) !== JSON.stringify(initial[name]),
  );
  return parts
    .map(([name, value]) => (typeof value === "string" ? toOneLine(value) : `${name} ${toOneLine(value)}`))
    .join(" · ");
}
