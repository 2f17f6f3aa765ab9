import { isObject, type JsonObject } from "../../src/model/json.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { ModelUsage } from "../../src/model/run.ts";

/** The tokens of one message, and the names of its model. */
interface MessageUsage {
  readonly models: Set<string>;
  input: number;
  output: number;
}

/**
 * The most messages that are remembered, so that a message that is reported again is not counted twice. The tokens of
 * older messages stay in the totals of their model.
 */
const MAX_MESSAGES = 1_000;
/** The most models with totals of their own. The tokens of further models are added to the totals of the last model. */
const MAX_MODELS = 100;

/** True for facts that may report tokens of a message. */
export const mayReportTokens = ({ t }: Fact): boolean => t === "message" || t === "piece" || t === "complete";

/**
 * Adds up the tokens that a run's facts report, by model. A message is reported in pieces while it is streamed, and
 * again as a whole by each graph whose node returns it. The tokens of the pieces are added up; the whole message is
 * counted only if its pieces reported no tokens.
 */
export class UsageTotals {
  readonly #totals: ModelUsage[];
  readonly #messages = new Map<string, MessageUsage>();
  /** Ids of the messages that are being streamed, by the id of their first event. */
  readonly #streamed = new Map<number, string>();
  #hasChanged = false;

  /** Starts from the totals of the run's earlier attempts; null: there are none. */
  constructor(earlier: readonly ModelUsage[] | null) {
    this.#totals = [...(earlier ?? [])];
  }

  /**
   * Counts the tokens that a fact reports. `event`: the id of the fact's event; used only if the fact begins
   * a message.
   */
  add(fact: Fact, event: number): void {
    switch (fact.t) {
      case "message":
        this.#streamed.set(event, fact.id);
        if (this.#streamed.size > MAX_MESSAGES) deleteFirst(this.#streamed);
        this.#name(this.#messageOf(fact.id), fact.meta["ls_model_name"]);
        break;
      case "piece": {
        const id = this.#streamed.get(fact.m);
        if (id === undefined) break;
        const message = this.#messageOf(id);
        this.#nameAll(message, fact.chunk);
        this.#count(message, fact.chunk);
        break;
      }
      case "complete": {
        const { id, type } = fact.message;
        if (type !== "ai" || typeof id !== "string") break;
        const message = this.#messageOf(id);
        this.#nameAll(message, fact.message);
        this.#name(message, fact.meta["ls_model_name"]);
        if (message.input + message.output === 0) this.#count(message, fact.message);
        break;
      }
      default:
    }
  }

  /** True if tokens were added since the last call of this function. */
  takeChange(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  list(): readonly ModelUsage[] | null {
    const totals = [...this.#totals];
    for (const message of this.#messages.values()) addTo(totals, message);
    return totals.length === 0 ? null : totals;
  }

  #messageOf(id: string): MessageUsage {
    let message = this.#messages.get(id);
    if (message !== undefined) return message;
    message = { models: new Set(), input: 0, output: 0 };
    this.#messages.set(id, message);
    if (this.#messages.size > MAX_MESSAGES) {
      const [oldest] = this.#messages.values();
      if (oldest !== undefined) addTo(this.#totals, oldest);
      deleteFirst(this.#messages);
    }
    return message;
  }

  #nameAll(message: MessageUsage, { response_metadata: metadata }: JsonObject): void {
    if (!isObject(metadata)) return;
    this.#name(message, metadata["model_name"]);
    this.#name(message, metadata["model"]);
  }

  #name({ models }: MessageUsage, name: unknown): void {
    if (typeof name === "string" && name !== "") models.add(name);
  }

  #count(message: MessageUsage, { usage_metadata: usage }: JsonObject): void {
    if (!isObject(usage)) return;
    const { input_tokens: input, output_tokens: output } = usage;
    if (isCount(input)) message.input += input;
    if (isCount(output)) message.output += output;
    this.#hasChanged = true;
  }
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

function addTo(totals: ModelUsage[], { models, input, output }: MessageUsage): void {
  if (input + output === 0) return;
  const names = [...models];
  let at = totals.findIndex((one) => isSame(one.models, names));
  if (at < 0 && totals.length >= MAX_MODELS) at = totals.length - 1;
  const before = totals[at];
  if (before === undefined) totals.push({ models: names, input_tokens: input, output_tokens: output });
  else {
    totals[at] = {
      models: before.models,
      input_tokens: before.input_tokens + input,
      output_tokens: before.output_tokens + output,
    };
  }
}

const isSame = (names: readonly string[], others: readonly string[]): boolean =>
  names.length === others.length && names.every((name) => others.includes(name));

function deleteFirst<K>(map: Map<K, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
