import { AsyncLocalStorage } from "node:async_hooks";
import { toPlainError, type PlainError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { TaskOutcome } from "../ports/engine.ts";
import type { Intercept, InterceptedNode } from "./node-interception.ts";
import { taskPathOf } from "./graph-progress.ts";

/** Receives the calls of a run's nodes. */
export interface CallReceiver {
  called(called: InterceptedCall): void;
}

/**
 * The asynchronous context of a node call. `callee`: the receiver of the run's calls. `within`: the task whose node function is running;
 * null if none is.
 */
interface Scope {
  readonly owner: NodeCallContext;
  readonly callee: CallReceiver;
  readonly within: string | null;
  /** The enclosing scope of another owner. It exists if a node of one engine starts a run of another engine in the same process. */
  readonly outer: Scope | undefined;
}

/**
 * One `AsyncLocalStorage` for all engines. Each app and each reload creates an engine, and up to Node 22, each `AsyncLocalStorage` that was
 * ever entered slows down all later promises of the process.
 */
const currentScope = new AsyncLocalStorage<Scope>();

/** Additions to the configuration that LangGraph gives to a node function. */
export interface BodyOptions {
  readonly signal: AbortSignal | undefined;
  /** The ids of the checkpoints from which the node's subgraphs continue, by namespace. */
  readonly places: JsonObject | undefined;
}

/** LangGraph's call of a node. It waits until the run's actor lets the node function run. */
export class InterceptedCall {
  readonly task: string;
  readonly name: string;
  /** The namespace of the graph to which the node belongs. */
  readonly ns: string;
  /** The id of the task whose node function called the graph; null for the root graph. */
  readonly within: string | null;
  readonly path: readonly (string | number)[];
  readonly triggers: readonly string[];
  readonly step: number;
  /** The number of this attempt of the task, counted from 1; null if LangGraph does not report it. */
  readonly attempt: number | null;
  /**
   * The error that the node function threw. Null if there is none, or if the error comes from a node of a graph that the node function
   * called.
   */
  thrown: { readonly error: unknown } | null = null;
  /** Resolves when the node function may run, and rejects if the call is dropped. */
  readonly go: Promise<BodyOptions>;
  #go: (going: BodyOptions) => void = () => undefined;
  #drop: (reason: Error) => void = () => undefined;
  #ended: (outcome: TaskOutcome) => void = () => undefined;

  constructor({ name, config }: InterceptedNode, within: string | null) {
    const { executionInfo: info, metadata = {} } = config as InfoConfig;
    const { langgraph_path: path, langgraph_triggers: triggers, langgraph_step: step } = metadata;
    // LangGraph below 1.2 has no `executionInfo`. The last segment of a task's namespace contains the task's id.
    const ns = info?.checkpointNs ?? String(metadata["langgraph_checkpoint_ns"] ?? "");
    this.task = info?.taskId ?? ns.slice(ns.lastIndexOf(":") + 1);
    this.name = name;
    this.ns = ns.split("|").slice(0, -1).join("|");
    this.within = within;
    this.path = taskPathOf(Array.isArray(path) ? path : undefined, name);
    this.triggers = Array.isArray(triggers) ? triggers.map(String) : [];
    this.step = typeof step === "number" ? step : 0;
    this.attempt = info?.nodeAttempt ?? null;
    this.go = new Promise((resolve, reject) => {
      this.#go = resolve;
      this.#drop = reject;
    });
    // Prevents an unhandled rejection if the call is dropped before anything awaits the promise.
    this.go.catch(() => undefined);
  }

  /** Lets the node function run, and resolves with its outcome. */
  start(going: BodyOptions): Promise<TaskOutcome> {
    return new Promise((resolve) => {
      this.#ended = resolve;
      this.#go(going);
    });
  }

  /** Cancels the call, so that the node function never runs. */
  drop(): void {
    this.#drop(new DOMException("The run was stopped", "AbortError"));
  }

  /** Rejects the call, because the executor could not run the node function. */
  fail({ error, message }: PlainError): void {
    this.#drop(Object.assign(new Error(message), { name: error }));
  }

  /** Ends the call. The returned value is not needed here, because LangGraph streams the result of the task. */
  returned(): void {
    this.#ended({ kind: "returned", value: null });
  }

  threw(thrown: unknown, here: boolean): void {
    if (here) this.thrown = { error: thrown };
    if (isBubble(thrown)) this.#ended({ kind: "interrupted", interrupts: [] });
    else this.#ended({ kind: "failed", error: toPlainError(thrown) });
  }
}

/** Adds a message to a thrown object that has none, because LangGraph keeps only the name and the message of what a node throws. */
function describeThrown(thrown: object): void {
  if ("message" in thrown || !Object.isExtensible(thrown)) return;
  Object.defineProperty(thrown, "message", { value: toPlainError(thrown).message, configurable: true });
}

/** Whether a thrown error is one with which LangGraph itself leaves a node function: an interrupt, or a command for the parent graph. */
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

/**
 * Finds the run to which the call of a node belongs, however deeply its graph is nested. It uses the asynchronous context, which
 * LangGraph's loop preserves.
 */
export class NodeCallContext {
  /**
   * Errors that node functions have thrown. An error of a graph that a node function called is thrown again by the calling node function.
   * It is found here, so it does not count as an error of the calling node.
   */
  readonly #thrown = new WeakSet<object>();

  /** Runs `drive`. Calls of nodes within it go to `callee`. */
  run<T>(callee: CallReceiver, drive: () => T): T {
    return currentScope.run(this.#scope(callee, null), drive);
  }

  readonly intercept: Intercept = async (call) => {
    const scope = this.#find();
    if (scope === undefined) return call.run();
    const called = new InterceptedCall(call, scope.within);
    scope.callee.called(called);
    const going = await called.go;
    const within = this.#scope(scope.callee, called.task);
    try {
      const value = await currentScope.run(within, () => call.run(given(call, going)));
      called.returned();
      return value;
    } catch (thrown) {
      const isError = typeof thrown === "object" && thrown !== null;
      if (isError) describeThrown(thrown);
      called.threw(thrown, !isError || !this.#thrown.has(thrown));
      if (isError) this.#thrown.add(thrown);
      throw thrown;
    }
  };

  #find(): Scope | undefined {
    let scope = currentScope.getStore();
    while (scope !== undefined && scope.owner !== this) scope = scope.outer;
    return scope;
  }

  #scope(callee: CallReceiver, within: string | null): Scope {
    return { owner: this, callee, within, outer: without(this, currentScope.getStore()) };
  }
}

/**
 * Removes the scopes of one owner from a chain of scopes. So a chain has at most one scope of each owner, however often their runs start
 * each other.
 */
function without(owner: NodeCallContext, scope: Scope | undefined): Scope | undefined {
  if (scope === undefined) return undefined;
  const outer = without(owner, scope.outer);
  if (scope.owner === owner) return outer;
  return outer === scope.outer ? scope : { ...scope, outer };
}

/**
 * The configuration with which a node function runs: LangGraph's signal and `checkpoint_map`, combined with those of the task. Undefined if
 * the task adds nothing.
 */
function given(
  { config }: InterceptedNode,
  { signal: own, places }: BodyOptions,
): Parameters<InterceptedNode["run"]>[0] {
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
