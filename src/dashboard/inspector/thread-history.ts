import type { ThreadState } from "../api/records.ts";
import { fetchJson } from "../requests.ts";
import type { RecordedTransition } from "./feed-model.ts";
import type { TakenPath } from "./taken-transitions.ts";

/** The largest number of stored states that are read. */
const MAX_STATES = 60;

type State = Pick<ThreadState, "next" | "metadata" | "created_at" | "checkpoint" | "parent_checkpoint">;

/** The history of a thread, taken from its stored states. */
export interface ThreadHistory {
  /** One transition for each state that led to the latest one, oldest first. */
  readonly steps: readonly RecordedTransition[];
  /** The path through the graph since the thread's latest input. */
  readonly path: TakenPath;
  /** The error of the thread's latest run; null if that run did not fail. */
  readonly error: { readonly error: string; readonly message: string } | null;
}

export const EMPTY_THREAD_HISTORY: ThreadHistory = { steps: [], path: [], error: null };

/**
 * Reads the error and the stored states of a thread.
 * @throws ApiKeyRequired if the server requires a valid key, RequestError for any other error response
 */
export async function readThreadHistory(thread: string): Promise<ThreadHistory> {
  const select = ["next", "metadata", "created_at", "checkpoint", "parent_checkpoint"];
  const [record, states] = await Promise.all([
    fetchJson<{ readonly error?: ThreadHistory["error"] }>(`threads/${encodeURIComponent(thread)}`),
    fetchJson<readonly State[]>(`threads/${encodeURIComponent(thread)}/history`, {
      body: { limit: MAX_STATES, select },
      isRead: true,
    }),
  ]);
  const line = ancestorsOf(states);
  return { steps: line.map(stepOf), path: wayOf(line), error: record.error ?? null };
}

const idOf = ({ checkpoint }: State): string => checkpoint?.checkpoint_id ?? "";

/** Returns the latest state and the states that led to it, oldest first. States of other branches are left out. */
function ancestorsOf(states: readonly State[]): readonly State[] {
  const line: State[] = [];
  let [at] = states;
  while (at !== undefined) {
    line.unshift(at);
    const parent: string | undefined = at.parent_checkpoint?.checkpoint_id;
    at = parent === undefined ? undefined : states.find((one) => idOf(one) === parent);
  }
  return line;
}

/** Returns the nodes that run next after a state, or the end node if there are none. */
const nextOf = ({ next }: State): readonly string[] => (next.length === 0 ? ["__end__"] : next);

function wayOf(line: readonly State[]): TakenPath {
  const begun = line.findLastIndex(({ metadata }) => metadata["source"] === "input");
  const since = line.slice(Math.max(0, begun)).filter(({ metadata }) => metadata["source"] !== "update");
  return since.map(nextOf);
}

function stepOf(state: State, i: number): RecordedTransition {
  const { metadata, created_at } = state;
  return {
    seq: i,
    at: Date.parse(created_at ?? ""),
    actor: `graph ${String(metadata["graph_id"] ?? "")}`,
    kind: "graph",
    event: `${String(metadata["source"])} ${String(metadata["step"])}`,
    words: nextOf(state).join(" + "),
  };
}
