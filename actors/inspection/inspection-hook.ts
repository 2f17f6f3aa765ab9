import { childActorsOf } from "../statechart-interpreter.ts";
import type { AnyActorRef, InspectionEvent } from "../xstate.ts";
import { START } from "../../src/graph/definition-checks.ts";
import { asStateValue } from "../../src/graph/chart-value-of-nodes.ts";
import type { Inspector, InspectScope, InspectedActor, InspectedEvent } from "../../src/ports/inspector.ts";
import type { RunActorOutput, TaskInput, TaskOutput } from "../actor-events.ts";
import type { LiveThread } from "../thread/live-thread.ts";
import { InspectedGraph } from "./inspected-graph.ts";
import { inspectedEventOf, inspectedStateOf } from "./inspected-values.ts";

/** What the inspector has been shown of an actor. */
interface ShownSoFar {
  readonly shown: InspectedActor;
  /** The last snapshot shown. Snapshots are immutable, so comparing references is enough. */
  snapshot: unknown;
  last: InspectedEvent;
}

/**
 * Shows the actors of one live thread to one inspector. XState reports a snapshot after the effects of its transition, so the end of a task
 * would be shown after its consequences. To keep the order, the current snapshots of an actor and of its parents are shown before anything
 * else about the actor.
 */
export class InspectionHook {
  readonly #liveThread: LiveThread;
  readonly #scope: InspectScope;
  readonly #inspector: Inspector;
  readonly #parents = new WeakMap<AnyActorRef, AnyActorRef>();
  readonly #shownActors = new WeakMap<AnyActorRef, ShownSoFar>();
  /** Graph views of runs that have not ended, by run id. */
  readonly #graphs = new Map<string, InspectedGraph>();
  readonly #root: AnyActorRef;
  readonly #end: () => void;

  constructor(liveThread: LiveThread, root: AnyActorRef, scope: InspectScope, inspector: Inspector) {
    this.#liveThread = liveThread;
    this.#root = root;
    this.#scope = scope;
    this.#inspector = inspector;
    const subscription = root.system.inspect({ next: (event) => this.#receive(event) });
    this.#end = () => subscription.unsubscribe();
  }

  /** Shows all live actors of the thread. */
  show(): void {
    this.#guarded(() => this.#showAll(this.#root));
  }

  stop(): void {
    this.#end();
  }

  #showAll(actor: AnyActorRef): void {
    this.#catchUp(actor);
    for (const child of childActorsOf(actor)) {
      if (!isActive(child)) continue;
      this.#parents.set(child, actor);
      this.#showAll(child);
    }
  }

  #receive(event: InspectionEvent): void {
    this.#guarded(() => {
      if (event.type === "@xstate.snapshot") {
        this.#catchUp(event.actorRef as AnyActorRef);
      } else if (event.type === "@xstate.event") {
        const actor = event.actorRef as AnyActorRef;
        // XState names the parent as the sender of the first event of a child. From this event, the hook learns who the parent is.
        if (event.event.type === "xstate.init" && event.sourceRef !== undefined)
          this.#parents.set(actor, event.sourceRef as AnyActorRef);
        const source = (event.sourceRef as AnyActorRef | undefined) ?? sayer(event.event, actor);
        if (source !== undefined) this.#catchUp(source);
        const shownActor = this.#catchUp(actor);
        shownActor.last = inspectedEventOf(event.event);
        this.#inspector.event(
          shownActor.shown,
          shownActor.last,
          source === undefined ? null : this.#catchUp(source).shown.id,
        );
      }
    });
  }

  /** Catches errors of the inspector. XState would throw them where the inspected actor is sent an event, and so break the actor. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (cause) {
      this.stop();
      this.#liveThread.deps.logger.error("the inspection of a thread failed and was stopped", {
        thread: this.#liveThread.key.thread,
        cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      });
    }
  }

  #catchUp(actor: AnyActorRef): ShownSoFar {
    const parent = this.#parents.get(actor);
    const above = parent === undefined ? undefined : this.#catchUp(parent);
    const snapshot: unknown = actor.getSnapshot();
    const shownActor = this.#shownActors.get(actor);
    if (shownActor === undefined) return this.#meet(actor, above?.shown);
    // The stop of a thread's actor is not shown: removing a thread from memory does not change the thread.
    if (shownActor.snapshot === snapshot || (above === undefined && isStopped(actor))) return shownActor;
    shownActor.snapshot = snapshot;
    this.#inspector.snapshot(
      shownActor.shown,
      inspectedStateOf(actor, this.#liveThread.key.thread),
      shownActor.last,
    );
    this.#noteEnd(actor, shownActor.shown);
    return shownActor;
  }

  #meet(actor: AnyActorRef, parent: InspectedActor | undefined): ShownSoFar {
    const shown = parent === undefined ? this.#thread() : this.#below(actor, parent);
    const shownActor: ShownSoFar = { shown, snapshot: actor.getSnapshot(), last: { type: "xstate.init" } };
    this.#shownActors.set(actor, shownActor);
    this.#inspector.actor(shown, inspectedStateOf(actor, this.#liveThread.key.thread));
    if (shown.kind === "run" && parent?.kind === "thread") this.#openGraph(actor, shown);
    if (shown.kind === "task") this.#graphs.get(shown.run ?? "")?.began(shown.id, this.#wayTo(actor));
    return shownActor;
  }

  #thread(): InspectedActor {
    const { thread } = this.#liveThread.key;
    return { id: thread, kind: "thread", name: "thread", parent: null, thread, run: null, machine: "thread" };
  }

  #below(actor: AnyActorRef, parent: InspectedActor): InspectedActor {
    const { thread } = parent;
    const { context } = actor.getSnapshot() as { readonly context: TaskInput & { readonly task?: string } };
    const { run } = context;
    // A task whose node function calls a graph has the tasks of that graph as direct children.
    if (parent.kind === "run" || context.task !== undefined) {
      const { task: id, name } = context;
      return { id, kind: "task", name, parent: parent.id, thread, run, machine: "task" };
    }
    const id = parent.kind === "task" ? `subgraph:${parent.id}` : run;
    const name = parent.kind === "task" ? parent.name : "run";
    return { id, kind: "run", name, parent: parent.id, thread, run, machine: "run" };
  }

  #openGraph(actor: AnyActorRef, { id: run, thread }: InspectedActor): void {
    const { engine } = this.#liveThread.deps;
    const graph = this.#liveThread.runs.get(run)?.graph_id;
    const chart = graph === undefined ? undefined : engine.chart?.(graph);
    if (graph === undefined || chart === undefined) return;
    const shown: InspectedActor = {
      id: `graph:${run}`,
      kind: "graph",
      name: graph,
      parent: run,
      thread,
      run,
      machine: `graph:${graph}`,
    };
    const values = () => (this.#scope.values ? (this.#liveThread.values ?? {}) : undefined);
    const { valueKey } = chart;
    const machineState = () =>
      valueKey === undefined ? undefined : asStateValue(this.#liveThread.values?.[valueKey]);
    const view = new InspectedGraph(shown, chart, this.#inspector, values, machineState);
    for (const [task, way] of this.#runningBelow(actor)) view.began(task, way);
    view.announce();
    this.#graphs.set(run, view);
  }

  /** The running tasks below an actor, with their paths. */
  *#runningBelow(actor: AnyActorRef): Generator<readonly [string, readonly string[]]> {
    for (const child of childActorsOf(actor)) {
      if (!isActive(child)) continue;
      const { context } = child.getSnapshot() as { readonly context: Partial<TaskInput> };
      if (context.task !== undefined) yield [context.task, this.#wayTo(child)];
      yield* this.#runningBelow(child);
    }
  }

  /** The path to a task's node: the names of the nodes above it, and the node's own name. */
  #wayTo(actor: AnyActorRef): readonly string[] {
    const { context } = actor.getSnapshot() as { readonly context?: Partial<TaskInput> };
    const parent = this.#parents.get(actor);
    const above = parent === undefined ? [] : this.#wayTo(parent);
    return context?.task === undefined ? above : [...above, context.name ?? START];
  }

  #noteEnd(actor: AnyActorRef, shown: InspectedActor): void {
    const { status, output } = actor.getSnapshot() as { readonly status: string; readonly output?: unknown };
    if (status === "active") return;
    const graph = this.#graphs.get(shown.run ?? "");
    if (shown.kind === "task") graph?.ended(shown.id, (output as TaskOutput | undefined)?.end ?? "cancelled");
    if (shown.id !== shown.run) return;
    graph?.close(output as RunActorOutput | undefined);
    this.#graphs.delete(shown.id);
  }
}

/**
 * The run's actor, if the event is `RUN.CLOSING`; otherwise undefined. XState does not know the sender of this event,
 * because an effect of the run's statechart calls `send` of the thread's actor directly.
 */
function sayer({ type }: { readonly type: string }, actor: AnyActorRef): AnyActorRef | undefined {
  return type === "RUN.CLOSING" ? childActorsOf(actor)[0] : undefined;
}

function statusOf(actor: AnyActorRef): string {
  return (actor.getSnapshot() as { readonly status: string }).status;
}

const isActive = (actor: AnyActorRef): boolean => statusOf(actor) === "active";
const isStopped = (actor: AnyActorRef): boolean => statusOf(actor) === "stopped";
