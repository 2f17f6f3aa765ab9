import { isJsonRecord, type JsonRecord, type TokenPrices } from "../api/records.ts";
import { type ChatMessage, isMessage, toChatMessage, uniqueNames } from "../live/chat-messages.ts";
import type { Task, Trace } from "../live/trace.ts";
import type { TimelineGroup } from "./timeline-rows.ts";

/**
 * A model call. Its start and end are not known, because the stored events contain only the start and end of its task.
 */
interface ModelCall {
  readonly kind: "model";
  readonly id: string;
  readonly models: readonly string[];
  readonly tokensIn: number | null;
  readonly tokensOut: number | null;
  /** The cost in dollars; null if the number of tokens or the price is not known. */
  readonly cost: number | null;
  readonly text: string;
}

/**
 * A tool call. It belongs to the task that returned the tool's result or, if no task of this run did, to the task
 * whose model requested the call.
 */
interface ToolCall {
  readonly kind: "tool";
  readonly id: string;
  readonly name: string;
  /**
   * The arguments as JSON text; null if the model of an earlier run requested the call, so that they are not known
   * here.
   */
  readonly args: string | null;
  readonly text: string;
  readonly status: "done" | "failed" | "unanswered";
}

export type TaskCall = ModelCall | ToolCall;
export type CallsPerTask = ReadonlyMap<string, readonly TaskCall[]>;

/** Finds the model and tool calls in the messages that each task streamed or returned. Returns them by task id. */
export function callsByTask(
  { messages: streamed }: Trace,
  groups: readonly TimelineGroup[],
  prices: TokenPrices,
): CallsPerTask {
  // The tasks of subgraphs come first, so that their messages belong to them: the task that called the subgraph
  // returns the same messages again.
  const lines = groups.flatMap((group) => group.lines).toSorted((a, b) => b.depth - a.depth);
  const owned = new Map<string, ChatMessage[]>();
  const seen = new Set<string>();
  for (const { task } of lines) {
    const own = task.messages.flatMap((id) => streamed.get(id) ?? []);
    for (const { id } of own) seen.add(id);
    owned.set(task.id, own);
  }
  const returned = new Map<string, ChatMessage>();
  for (const { task } of lines) {
    const own = owned.get(task.id) ?? [];
    const hasStreamed = own.length > 0;
    const given = idsIn(task.input);
    for (const message of messagesIn(task.result)) {
      const { id } = message;
      if (id === "" ? hasStreamed : given.has(id)) continue;
      if (id !== "") returned.set(id, message);
      if (seen.has(id)) continue;
      if (id !== "") seen.add(id);
      own.push(message);
    }
  }
  const all = [...owned.values()].flat();
  const answered = new Set(all.map(({ toolCallId }) => toolCallId));
  const asked = new Map(all.flatMap(({ calls }) => calls).map((call) => [call.id, call]));
  const callsOf = (message: ChatMessage): readonly TaskCall[] => {
    if (message.type === "tool") {
      const call = asked.get(message.toolCallId ?? "");
      const name = message.name ?? call?.name ?? "tool";
      const status = message.failed ? "failed" : "done";
      return [{ kind: "tool", id: message.id, name, args: call?.args ?? null, text: message.text, status }];
    }
    if (message.type !== "ai") return [];
    const open = message.calls.filter(({ id }) => !answered.has(id));
    return [
      modelCallOf(message, returned.get(message.id), prices),
      ...open.map(({ id, name, args }) => {
        return { kind: "tool", id, name, args, text: "", status: "unanswered" } as const;
      }),
    ];
  };
  return new Map([...owned].map(([task, messages]) => [task, messages.flatMap(callsOf)]));
}

/**
 * Creates the model call of a streamed message. `whole`: the message as a task returned it, which may contain more.
 */
function modelCallOf(streamed: ChatMessage, whole: ChatMessage | undefined, prices: TokenPrices): ModelCall {
  const usage = streamed.usage ?? whole?.usage ?? null;
  const models = uniqueNames(streamed.models, whole?.models ?? []);
  const count = (field: string) => (typeof usage?.[field] === "number" ? usage[field] : null);
  const [tokensIn, tokensOut] = [count("input_tokens"), count("output_tokens")];
  const cost = usage === null ? null : tokenCostOf(models, tokensIn ?? 0, tokensOut ?? 0, prices);
  return { kind: "model", id: streamed.id, models, tokensIn, tokensOut, cost, text: streamed.text };
}

/** Returns the cost of tokens in dollars; null if none of the model's names has a price. */
export function tokenCostOf(
  models: readonly string[],
  tokensIn: number,
  tokensOut: number,
  prices: TokenPrices,
): number | null {
  const priced = models.find((name) => Object.hasOwn(prices, name));
  const price = priced === undefined ? undefined : prices[priced];
  return price === undefined ? null : (tokensIn * price.in + tokensOut * price.out) / 1e6;
}

/**
 * Caches the messages found in inputs and results of tasks. These never change, but the page searches them again after
 * each event.
 */
const known = new WeakMap<object, readonly ChatMessage[]>();

/**
 * The depth of nesting to which messages are searched. A node may return them below keys of the state, in the update
 * of a `Command`, or in lists of pairs of a channel and a value.
 */
const MAX_DEPTH = 5;

function messagesIn(value: unknown): readonly ChatMessage[] {
  if (typeof value !== "object" || value === null) return [];
  let found = known.get(value);
  if (found === undefined) known.set(value, (found = rawMessagesIn(value, MAX_DEPTH).map(toChatMessage)));
  return found;
}

function rawMessagesIn(value: unknown, depth: number): readonly JsonRecord[] {
  if (isMessage(value)) return [value];
  if (depth === 0) return [];
  if (!Array.isArray(value) && !isJsonRecord(value)) return [];
  return Object.values(value).flatMap((member: unknown) => rawMessagesIn(member, depth - 1));
}

const idsIn = (input: unknown): ReadonlySet<string> => new Set(messagesIn(input).map(({ id }) => id));

/** The totals of a model's calls. */
export interface ModelTotals {
  readonly model: string;
  readonly calls: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** The cost in dollars of the calls whose cost is known; null if there are none. */
  readonly cost: number | null;
}

/** The totals of a run's model and tool calls. */
export interface CallTotals extends Omit<ModelTotals, "model"> {
  /** The totals of each model, the model with the most tokens first. */
  readonly models: readonly ModelTotals[];
  readonly toolCalls: number;
  /** The number of retries of all tasks. */
  readonly retries: number;
}

export const UNNAMED_MODEL = "model";

export function callTotalsOf(calls: CallsPerTask, tasks: Iterable<Task>): CallTotals {
  const all = [...calls.values()].flat();
  const models = new Map<string, ModelCall[]>();
  for (const call of all) {
    if (call.kind === "tool") continue;
    const name = call.models[0] ?? UNNAMED_MODEL;
    models.set(name, [...(models.get(name) ?? []), call]);
  }
  const byModel = [...models].map(([model, of]) => ({ model, ...sumOf(of) }));
  return {
    ...sumOf(all.filter((call) => call.kind === "model")),
    models: byModel.toSorted((a, b) => b.tokensIn + b.tokensOut - a.tokensIn - a.tokensOut),
    toolCalls: all.filter(({ kind }) => kind === "tool").length,
    retries: [...tasks].reduce((sum, { tries }) => sum + Math.max(0, tries - 1), 0),
  };
}

function sumOf(calls: readonly ModelCall[]): Omit<ModelTotals, "model"> {
  const costs = calls.flatMap(({ cost }) => cost ?? []);
  return {
    calls: calls.length,
    tokensIn: calls.reduce((sum, { tokensIn }) => sum + (tokensIn ?? 0), 0),
    tokensOut: calls.reduce((sum, { tokensOut }) => sum + (tokensOut ?? 0), 0),
    cost: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
  };
}

/** Formats dollars with two decimals; an amount below $0.10 with two significant digits. */
export function formatCost(dollars: number): string {
  if (dollars === 0 || dollars >= 0.1) return `$${dollars.toFixed(2)}`;
  return `$${dollars.toFixed(Math.min(8, 1 - Math.floor(Math.log10(dollars))))}`;
}

export const formatCount = (count: number): string => count.toLocaleString("en");

/** Returns whether a text occurs in a call's names, arguments or result. Case does not matter. */
export function callContains(call: TaskCall, text: string): boolean {
  const parts = call.kind === "model" ? [...call.models, call.text] : [call.name, call.args ?? "", call.text];
  return parts.some((part) => part.toLowerCase().includes(text.toLowerCase()));
}
