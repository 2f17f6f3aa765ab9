import { assign, sendTo, setup } from "xstate";
import type { CancelAction } from "../../src/model/run.ts";
import type { RestState } from "../../src/model/thread.ts";
import type { RunOutput, ThreadEvent } from "../messages.ts";
import type { RunMachine } from "../run/machine.ts";
import { decide, stronger, type Situation } from "./multitask.ts";

/** Small, plain data: what the inspector shows. State, sockets and controllers live in the thread's cell. */
export interface ThreadContext {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  /** How the active run is being stopped. */
  readonly stop: CancelAction | null;
  readonly rest: RestState;
}

export interface ThreadInput {
  readonly thread: string;
  readonly active: string | null;
  readonly queue: readonly string[];
  readonly rest: RestState;
}

/** What the chart asks of the world; each answer comes back as a message. */
export interface ThreadEffects {
  /** Store the start of the active run (unless its admission did): answered by `RUN.STARTED`. */
  start(thread: string, run: string): void;
}

const resting: readonly RestState[] = ["idle", "success", "interrupted", "error"];

/** The four rest states differ in name alone: in how the last run ended. */
const atRest = {
  on: {
    "RUN.ADMITTED": { guard: "starts", target: "pending", actions: ["enqueue", "takeNext"] },
  },
} as const;

/** The thread's statechart: at rest in the state that its last run left, or at work in `pending`. */
export function threadMachine(effects: ThreadEffects, run: RunMachine) {
  return setup({
    types: {
      context: {} as ThreadContext,
      input: {} as ThreadInput,
      events: {} as ThreadEvent,
    },
    actors: { run },
    guards: {
      hasWork: ({ context }) => context.active !== null || context.queue.length > 0,
      hasNext: ({ context }) => context.queue.length > 0,
      isStopping: ({ context }) => context.stop !== null,
      isActive: ({ context, event }) => event.type === "RUN.CANCEL" && event.run === context.active,
      // The multitask rules are one table; the chart asks it, so that what it shows and what is decided cannot differ.
      starts: ({ event }) =>
        event.type === "RUN.ADMITTED" && decide(event.strategy, "resting").kind === "start",
      queues: ({ event }) =>
        event.type === "RUN.ADMITTED" && decide(event.strategy, "working").kind === "queue",
      supersedes: ({ event }) =>
        event.type === "RUN.ADMITTED" && decide(event.strategy, "working").kind === "supersede",
      endedIn: (_, params: { rest: RestState; output: RestState }) => params.rest === params.output,
      restsIn: ({ context }, params: { rest: RestState }) => context.rest === params.rest,
    },
    actions: {
      start: ({ context }) => {
        if (context.active !== null) effects.start(context.thread, context.active);
      },
      stopRun: sendTo("run", ({ context }) => ({ type: "CANCEL", action: context.stop ?? "interrupt" })),
      beginRun: sendTo("run", { type: "BEGIN" }),
      enqueue: assign(({ context, event }) =>
        event.type === "RUN.ADMITTED" ? { queue: [...context.queue, event.run] } : {},
      ),
      takeOver: assign(({ event }) => (event.type === "RUN.ADMITTED" ? { queue: [event.run] } : {})),
      stopForNewRun: assign(({ context, event }) =>
        event.type === "RUN.ADMITTED" && event.strategy === "rollback"
          ? { stop: "rollback" as const }
          : { stop: stronger(context.stop, "interrupt") },
      ),
      stopAsAsked: assign(({ context, event }) =>
        event.type === "RUN.CANCEL" ? { stop: stronger(context.stop, event.action) } : {},
      ),
      withdraw: assign(({ context, event }) =>
        event.type === "RUN.WITHDRAWN" ? { queue: context.queue.filter((id) => id !== event.run) } : {},
      ),
      takeNext: assign(({ context }) => ({
        active: context.queue[0] ?? null,
        queue: context.queue.slice(1),
        stop: null,
      })),
      // A run that was in progress when the server went down is still the active one.
      takeUp: assign(({ context }) =>
        context.active === null ? { active: context.queue[0] ?? null, queue: context.queue.slice(1) } : {},
      ),
      comeToRest: assign((_, params: { rest: RestState }) => ({
        active: null,
        stop: null,
        rest: params.rest,
      })),
    },
  }).createMachine({
    id: "thread",
    initial: "waking",
    context: ({ input }) => ({ ...input, stop: null }),
    on: { "GIVE.UP": { target: ".failed" } },
    states: {
      waking: {
        always: [
          { guard: "hasWork", target: "pending", actions: "takeUp" },
          ...resting.map((rest) => ({ guard: { type: "restsIn", params: { rest } }, target: rest }) as const),
        ],
      },
      idle: atRest,
      success: atRest,
      interrupted: atRest,
      error: atRest,
      pending: {
        // Invoked on the parent: moving between the inner states never stops the run. A cancel is a message; the thread
        // leaves `pending` only when the run has said that it is done.
        invoke: {
          id: "run",
          src: "run",
          input: ({ context }) => ({ thread: context.thread, run: context.active ?? "" }),
          onDone: [
            { guard: "hasNext", target: "pending", reenter: true, actions: "takeNext" },
            ...resting.map(
              (rest) =>
                ({
                  guard: {
                    type: "endedIn",
                    params: ({ event }: { event: { output: unknown } }) => ({
                      rest,
                      output: (event.output as RunOutput).rest,
                    }),
                  },
                  target: rest,
                  actions: { type: "comeToRest", params: { rest } },
                }) as const,
            ),
          ],
          onError: { target: "failed" },
        },
        initial: "starting",
        on: {
          "RUN.WITHDRAWN": { actions: "withdraw" },
          "RUN.CLOSING": { target: ".settling" },
        },
        states: {
          starting: {
            entry: "start",
            on: {
              "RUN.STARTED": [
                { guard: "isStopping", target: "stopping", actions: "beginRun" },
                { target: "running", actions: "beginRun" },
              ],
              "RUN.ADMITTED": [
                { guard: "queues", actions: "enqueue" },
                { guard: "supersedes", actions: ["takeOver", "stopForNewRun", "stopRun"] },
              ],
              "RUN.CANCEL": { guard: "isActive", actions: ["stopAsAsked", "stopRun"] },
            },
          },
          running: {
            on: {
              "RUN.ADMITTED": [
                { guard: "queues", actions: "enqueue" },
                {
                  guard: "supersedes",
                  target: "stopping",
                  actions: ["takeOver", "stopForNewRun", "stopRun"],
                },
              ],
              "RUN.CANCEL": { guard: "isActive", target: "stopping", actions: ["stopAsAsked", "stopRun"] },
            },
          },
          stopping: {
            on: {
              "RUN.ADMITTED": [
                { guard: "queues", actions: "enqueue" },
                { guard: "supersedes", actions: ["takeOver", "stopForNewRun", "stopRun"] },
              ],
              "RUN.CANCEL": { guard: "isActive", actions: ["stopAsAsked", "stopRun"] },
            },
          },
          settling: {
            on: {
              "RUN.ADMITTED": [
                { guard: "queues", actions: "enqueue" },
                { guard: "supersedes", actions: "takeOver" },
              ],
            },
          },
        },
      },
      failed: { type: "final" },
    },
  });
}

/** What a new run meets, read from the chart's state. */
export function situationOf(value: unknown): Situation {
  if (typeof value !== "object") return "resting";
  return (value as { pending?: string }).pending === "settling" ? "settling" : "working";
}
