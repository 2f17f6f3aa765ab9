import { AsyncLocalStorage } from "node:async_hooks";
import { plainError, type PlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { TaskOutcome } from "../ports/engine.ts";
import type { Intercept, NodeCalled } from "./node-interception.ts";
import { pathOf } from "./loop-checkpoints.ts";

/** What takes in the calls of a run's nodes. */
export interface Callee {
  called(called: Called): void;
}

/** Whose nodes are called here, and within which task's body. */
interface Scope {
  readonly callee: Callee;
  readonly within: string | null;
}

/** What a body is given beside what LangGraph gives it. */
export interface Going {
  readonly signal: AbortSignal | undefined;
  /** Where graphs within it begin: by namespace the checkpoint. */
  readonly places: JsonObject | undefined;
}

/** A node that LangGraph has called, and that waits to be run. */
export class Called {
  readonly task: string;
  readonly name: string;
  /** Of the graph that it is a node of. */
  readonly ns: string;
  /** The task within whose body that graph runs. */
  readonly within: string | null;
  readonly path: readonly (string | number)[];
  readonly triggers: readonly string[];
  readonly step: number;
  /** Which try it is, from 1. */
  readonly attempt: number;
  /** What the body threw, unless that came up from a body within. */
  thrown: { readonly error: unknown } | null = null;
  /** Resolves when the body is to run. */
  readonly go: Promise<Going>;
  #go: (going: Going) => void = () => undefined;
  #drop: (reason: Error) => void = () => undefined;
  #ended: (outcome: TaskOutcome) => void = () => undefined;

  constructor({ name, config }: NodeCalled, within: string | null) {
    const { executionInfo: info, metadata = {} } = config as InfoConfig;
    const ns = info?.checkpointNs ?? "";
    this.task = info?.taskId ?? "";
    this.name = name;
    this.ns = ns.split("|").slice(0, -1).join("|");
    this.within = within;
    const { langgraph_path: path, langgraph_triggers: triggers, langgraph_step: step } = metadata;
    this.path = pathOf(Array.isArray(path) ? path : undefined, name);
    this.triggers = Array.isArray(triggers) ? triggers.map(String) : [];
    this.step = typeof step === "number" ? step : 0;
    this.attempt = info?.nodeAttempt ?? 1;
    this.go = new Promise((resolve, reject) => {
      this.#go = resolve;
      this.#drop = reject;
    });
    // It may be dropped before anybody waits for it.
    this.go.catch(() => undefined);
  }

  /** Lets the body run, and resolves with how it has ended. */
  start(going: Going): Promise<TaskOutcome> {
    return new Promise((resolve) => {
      this.#ended = resolve;
      this.#go(going);
    });
  }

  /** The body never runs. */
  drop(): void {
    this.#drop(new DOMException("The run was stopped", "AbortError"));
  }

  /** The host could not run the body: LangGraph waits for it, and is told why. */
  fail({ error, message }: PlainError): void {
    this.#drop(Object.assign(new Error(message), { name: error }));
  }

  /** What the body returned is LangGraph's affair: what the task comes to is told by that. */
  returned(): void {
    this.#ended({ kind: "returned", value: null });
  }

  threw(thrown: unknown, here: boolean): void {
    if (here) this.thrown = { error: thrown };
    if (isBubble(thrown)) this.#ended({ kind: "interrupted", interrupts: [] });
    else this.#ended({ kind: "failed", error: plainError(thrown) });
  }
}

/** How LangGraph leaves a body on its own account: at a question, or for the graph above. */
function isBubble(thrown: unknown): boolean {
  return thrown instanceof Error && isObject({ ...thrown }) && "is_bubble_up" in thrown;
}

interface InfoConfig {
  readonly executionInfo?: {
    readonly checkpointNs?: string;
    readonly taskId?: string;
    readonly nodeAttempt?: number;
  };
  readonly metadata?: { readonly [key: string]: unknown };
}

/** Knows in whose run a node is called, however deep: by the asynchronous context, which LangGraph's own loop keeps. */
export class Scopes {
  readonly #current = new AsyncLocalStorage<Scope>();
  /** By bodies, on its way up. */
  readonly #thrown = new WeakSet<object>();

  /** Runs what drives a graph: the nodes that it calls are this run's. */
  run<T>(callee: Callee, drive: () => T): T {
    return this.#current.run({ callee, within: null }, drive);
  }

  readonly intercept: Intercept = async (call) => {
    const scope = this.#current.getStore();
    if (scope === undefined) return call.run();
    const called = new Called(call, scope.within);
    scope.callee.called(called);
    const going = await called.go;
    const within: Scope = { callee: scope.callee, within: called.task };
    try {
      const value = await this.#current.run(within, () => call.run(given(call, going)));
      called.returned();
      return value;
    } catch (thrown) {
      const isError = typeof thrown === "object" && thrown !== null;
      called.threw(thrown, !isError || !this.#thrown.has(thrown));
      if (isError) this.#thrown.add(thrown);
      throw thrown;
    }
  };
}

/** Both the signal that LangGraph gives the node and the task's own; and both their places. */
function given({ config }: NodeCalled, { signal: own, places }: Going): Parameters<NodeCalled["run"]>[0] {
  if (own === undefined && places === undefined) return undefined;
  const { configurable = {}, signal: theirs } = config;
  const signal = theirs && own ? AbortSignal.any([theirs, own]) : (own ?? theirs);
  const map: unknown = configurable["checkpoint_map"];
  return {
    ...(signal !== undefined && { signal }),
    ...(places !== undefined && {
      configurable: { ...configurable, checkpoint_map: { ...(isObject(map) && map), ...places } },
    }),
  };
}
