import type { CancelAction } from "../../src/model/run.ts";
import type { SettledState } from "../../src/model/thread.ts";
import type { RunEvent, RunOutput, ThreadEvent } from "../messages.ts";
import { decideMultitask, strongerStop, type ThreadSituation } from "./multitask.ts";

/**
 * Context of the thread's statechart: small, plain data that the inspector shows. State, sockets and abort
 * controllers are kept elsewhere.
 */
export interface ThreadContext {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  /** How the active run is being stopped; null: it is not. */
  readonly stop: CancelAction | null;
  readonly rest: SettledState;
}

export interface ThreadInput {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  readonly rest: SettledState;
}

/** Side effects of the statechart. Each answer comes back as a message. */
export interface ThreadEffects {
  /** Asks for a slot for the active run. Answered by `RUN.READY`. */
  ask(thread: string, run: string): void;
  /** Stores the start of the active run (unless its admission did). Answered by `RUN.STARTED`. */
  start(thread: string, run: string): void;
}

/** XState's done event of the run's actor. */
type RunEnded = { readonly type: "xstate.done.actor.run"; readonly output: RunOutput };

/** Events that the thread's actor receives: messages, and XState's events about the run's actor and itself. */
export type ThreadActorEvent =
  | ThreadEvent
  | RunEnded
  | { readonly type: "xstate.error.actor.run"; readonly error: unknown }
  | { readonly type: "xstate.stop" };

/** Parameter of guards and assigns: the rest state. */
export interface RestParams {
  readonly rest: SettledState;
}

/** Guards of transitions, by name. */
export const threadGuards = {
  hasActive: (context: ThreadContext) => context.active !== null,
  hasNext: (context: ThreadContext) => context.queue.length > 0,
  isStopping: (context: ThreadContext) => context.stop !== null,
  isActive: (context: ThreadContext, event: ThreadActorEvent) =>
    (event.type === "RUN.CANCEL" || event.type === "RUN.READY") && event.run === context.active,
  makesWay: (context: ThreadContext, event: ThreadActorEvent) =>
    event.type === "RUN.WITHDRAWN" && event.run === context.active && context.queue.length > 0,
  leavesIn: (context: ThreadContext, event: ThreadActorEvent, { rest }: RestParams) =>
    event.type === "RUN.WITHDRAWN" && event.run === context.active && context.rest === rest,
  // The chart asks the multitask rules themselves, so that the chart and the decision cannot differ.
  startsNow: (_: ThreadContext, event: ThreadActorEvent) =>
    event.type === "RUN.ADMITTED" &&
    event.starts &&
    decideMultitask(event.strategy, "resting").kind === "start",
  starts: (_: ThreadContext, event: ThreadActorEvent) =>
    event.type === "RUN.ADMITTED" && decideMultitask(event.strategy, "resting").kind === "start",
  queues: (_: ThreadContext, event: ThreadActorEvent) =>
    event.type === "RUN.ADMITTED" && decideMultitask(event.strategy, "working").kind === "queue",
  supersedes: (_: ThreadContext, event: ThreadActorEvent) =>
    event.type === "RUN.ADMITTED" && decideMultitask(event.strategy, "working").kind === "supersede",
  endedIn: (_: ThreadContext, event: ThreadActorEvent, { rest }: RestParams) =>
    event.type === "xstate.done.actor.run" && event.output.rest === rest,
  updatedTo: (_: ThreadContext, event: ThreadActorEvent, { rest }: RestParams) =>
    event.type === "STATE.UPDATED" && event.rest === rest,
  restsIn: (context: ThreadContext, _: ThreadActorEvent, { rest }: RestParams) => context.rest === rest,
};

/** Context changes of transitions, by name. */
export const threadAssigns = {
  enqueue: (context: ThreadContext, event: ThreadActorEvent): Partial<ThreadContext> =>
    event.type === "RUN.ADMITTED" ? { queue: [...context.queue, event.run] } : {},
  takeOver: (_: ThreadContext, event: ThreadActorEvent): Partial<ThreadContext> =>
    event.type === "RUN.ADMITTED" ? { queue: [event.run] } : {},
  stopForNewRun: (context: ThreadContext, event: ThreadActorEvent): Partial<ThreadContext> =>
    event.type === "RUN.ADMITTED" && event.strategy === "rollback"
      ? { stop: "rollback" }
      : { stop: strongerStop(context.stop, "interrupt") },
  stopAsAsked: (context: ThreadContext, event: ThreadActorEvent): Partial<ThreadContext> =>
    event.type === "RUN.CANCEL" ? { stop: strongerStop(context.stop, event.action) } : {},
  withdraw: (context: ThreadContext, event: ThreadActorEvent): Partial<ThreadContext> =>
    event.type === "RUN.WITHDRAWN" ? { queue: context.queue.filter((id) => id !== event.run) } : {},
  takeNext: (context: ThreadContext): Partial<ThreadContext> => ({
    active: context.queue[0] ?? null,
    queue: context.queue.slice(1),
    stop: null,
  }),
  comeToRest: (_: ThreadContext, __: ThreadActorEvent, { rest }: RestParams): Partial<ThreadContext> => ({
    active: null,
    stop: null,
    rest,
  }),
};

/** Messages of transitions to the run's actor, by name. */
export const runMessages = {
  stopRun: (context: ThreadContext): RunEvent => ({ type: "CANCEL", action: context.stop ?? "interrupt" }),
  beginRun: (): RunEvent => ({ type: "BEGIN" }),
};

const updated = <R extends "idle" | "interrupted">(rest: R) =>
  ({
    guard: { type: "updatedTo", params: { rest } },
    target: `#thread.${rest}`,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

/** The four rest states differ only in name, which says how the last run ended. */
const atRest = {
  on: {
    "RUN.ADMITTED": [
      { guard: "startsNow", target: "pending.starting", actions: ["enqueue", "takeNext"] },
      { guard: "starts", target: "pending", actions: ["enqueue", "takeNext"] },
    ],
    "STATE.UPDATED": [updated("idle"), updated("interrupted")],
  },
} as const;

const waking = <R extends SettledState>(rest: R) =>
  ({ guard: { type: "restsIn", params: { rest } }, target: rest }) as const;

const ending = <R extends SettledState>(rest: R) =>
  ({
    guard: { type: "endedIn", params: { rest } },
    target: rest,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

const leaving = <R extends SettledState>(rest: R) =>
  ({
    guard: { type: "leavesIn", params: { rest } },
    target: `#thread.${rest}`,
    actions: [{ type: "comeToRest", params: { rest } }],
  }) as const;

const queueing = { guard: "queues", actions: ["enqueue"] } as const;
const superseding = { guard: "supersedes", actions: ["takeOver", "stopForNewRun", "stopRun"] } as const;
const cancelling = { guard: "isActive", actions: ["stopAsAsked", "stopRun"] } as const;

/**
 * The thread's statechart: idle in the state that its last run left, or busy in `pending`. It is plain data with two
 * readers: XState (`xstateThreadChart`: the inspector, the tests that walk it) and the actor itself (`thread-machine.ts`).
 */
export const threadChart = {
  id: "thread",
  initial: "waking",
  on: { "GIVE.UP": [{ target: ".failed" }] },
  states: {
    waking: {
      always: [
        // A run that was in progress when the server went down is still the active one, and has its slot.
        { guard: "hasActive", target: "pending.starting" },
        { guard: "hasNext", target: "pending", actions: ["takeNext"] },
        waking("idle"),
        waking("success"),
        waking("interrupted"),
        waking("error"),
      ],
    },
    idle: atRest,
    success: atRest,
    interrupted: atRest,
    error: atRest,
    pending: {
      // Invoked on the parent state: moving between the inner states never stops the run. A cancel is a message; the
      // thread leaves `pending` only when the run's actor is done.
      invoke: {
        id: "run",
        src: "run",
        onDone: [
          { guard: "hasNext", target: "pending", reenter: true, actions: ["takeNext"] },
          ending("idle"),
          ending("success"),
          ending("interrupted"),
          ending("error"),
        ],
        onError: [{ target: "failed" }],
      },
      initial: "waiting",
      on: {
        "RUN.WITHDRAWN": [{ actions: ["withdraw"] }],
        "RUN.CLOSING": [{ target: ".settling" }],
      },
      states: {
        // The run waits for a slot. It has not started: whatever ends or replaces it need not send it a message.
        waiting: {
          entry: ["ask"],
          on: {
            "RUN.READY": [{ guard: "isActive", target: "starting" }],
            "RUN.ADMITTED": [
              queueing,
              {
                guard: "supersedes",
                target: "#thread.pending",
                reenter: true,
                actions: ["takeOver", "takeNext"],
              },
            ],
            "RUN.WITHDRAWN": [
              { guard: "makesWay", target: "#thread.pending", reenter: true, actions: ["takeNext"] },
              leaving("idle"),
              leaving("success"),
              leaving("interrupted"),
              leaving("error"),
            ],
          },
        },
        starting: {
          entry: ["start"],
          on: {
            "RUN.STARTED": [
              { guard: "isStopping", target: "stopping", actions: ["beginRun"] },
              { target: "running", actions: ["beginRun"] },
            ],
            "RUN.ADMITTED": [queueing, superseding],
            "RUN.CANCEL": [cancelling],
          },
        },
        running: {
          on: {
            "RUN.ADMITTED": [queueing, { ...superseding, target: "stopping" }],
            "RUN.CANCEL": [{ ...cancelling, target: "stopping" }],
          },
        },
        stopping: { on: { "RUN.ADMITTED": [queueing, superseding], "RUN.CANCEL": [cancelling] } },
        settling: {
          on: { "RUN.ADMITTED": [queueing, { guard: "supersedes", actions: ["takeOver"] }] },
        },
      },
    },
    failed: { type: "final" },
  },
} as const;

/** The situation for a new run, read from the chart's state. */
export function situationOf(value: unknown): ThreadSituation {
  if (typeof value !== "object") return "resting";
  return (value as { pending?: string }).pending === "settling" ? "settling" : "working";
}
