/** What is used of XState 5. The package itself comes from the user's project. */
export interface XStateLibrary {
  createActor(logic: unknown, options?: object): XStateActor;
  createMachine(config: object): Machine;
}

export interface XStateActor {
  readonly id: string;
  readonly src?: unknown;
  readonly logic: ActorLogic;
  readonly options: { readonly input?: unknown };
  readonly _parent?: XStateActor;
  readonly _actorScope: object;
  readonly system: {
    _sendInspectionEvent(event: { readonly type: string; readonly actorRef: XStateActor }): void;
  };
  readonly _syncSnapshot?: boolean;
  _snapshot: Snapshot;
  start(): unknown;
  stop(): unknown;
  subscribe(observer: { error?(error: unknown): void; complete?(): void }): unknown;
  on(type: string, handler: (event: unknown) => void): unknown;
  getSnapshot(): Snapshot;
}

/** XState's actor scope, an argument by which the logic of an actor finds the actor. */
export interface ActorScope {
  readonly self: XStateActor;
}

export interface ActorLogic {
  transition(snapshot: Snapshot, event: object, scope: object): Snapshot;
}

export interface Snapshot {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly value: unknown;
  readonly context: object;
  readonly output: unknown;
  readonly error: unknown;
  readonly tags: ReadonlySet<string>;
  /** The child actors of a machine, by id. */
  readonly children?: { readonly [id: string]: XStateActor | undefined };
  readonly historyValue: { readonly [id: string]: readonly StateNode[] };
  readonly _nodes: readonly StateNode[];
  getMeta(): object;
  can(event: object): boolean;
}

export interface Action {
  readonly type: string;
  readonly params: unknown;
  readonly info: unknown;
  readonly exec: ((info: unknown, params: unknown) => unknown) | undefined;
}

export interface Transition {
  readonly target?: readonly StateNode[];
  readonly guard?: unknown;
  readonly eventType: string;
  readonly actions: readonly unknown[];
}

/** An actor that a state starts when it is entered. */
export interface InvokedActor {
  readonly id: string;
  readonly src: string;
  readonly systemId?: string;
  readonly input?: unknown;
  readonly onSnapshot?: unknown;
}

export interface StateNode {
  readonly id: string;
  readonly key: string;
  readonly type: "atomic" | "compound" | "parallel" | "final" | "history";
  readonly path: readonly string[];
  readonly description?: string;
  readonly parent?: StateNode;
  readonly states: { readonly [key: string]: StateNode };
  readonly initial: { readonly target: readonly StateNode[]; readonly actions: readonly unknown[] };
  readonly transitions: ReadonlyMap<string, readonly Transition[]>;
  readonly always?: readonly Transition[];
  readonly invoke: readonly InvokedActor[];
  /** The delayed transitions. Several may have the same event, which one timer sends. */
  readonly after: readonly { readonly eventType: string; readonly delay: unknown }[];
  readonly entry: readonly unknown[];
  readonly exit: readonly unknown[];
  readonly ownEvents: readonly string[];
}

export interface Machine {
  readonly id: string;
  readonly config: { readonly context?: unknown };
  readonly version: string | undefined;
  /** The value of the option `schemas`. XState keeps it but does not use it. */
  readonly schemas?: unknown;
  readonly root: StateNode;
  readonly definition: object;
  readonly implementations: {
    readonly actors: { readonly [src: string]: unknown };
    readonly delays?: { readonly [name: string]: unknown };
  };
  transition(...given: readonly never[]): unknown;
  getInitialSnapshot(scope: ActorScope, input: unknown): Snapshot;
  resolveState(config: { readonly value: unknown; readonly context: object }): Snapshot;
  restoreSnapshot(snapshot: object, scope: ActorScope): Snapshot;
  getPersistedSnapshot(snapshot: Snapshot): Snapshot;
}

/**
 * Whether a value is a machine. It is recognised by its members: `instanceof` does not work, because a project may have several copies and
 * versions of XState.
 */
export function isMachine(value: unknown): value is Machine {
  if (typeof value !== "object" || value === null) return false;
  const { config, root, transition } = value as Partial<Machine>;
  return (
    typeof config === "object" &&
    typeof root === "object" &&
    typeof transition === "function" &&
    "states" in root
  );
}

export function allStates(node: StateNode): readonly StateNode[] {
  return [node, ...Object.values(node.states).flatMap(allStates)];
}
