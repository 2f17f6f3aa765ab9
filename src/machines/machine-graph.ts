import {
  defineGraph,
  type DescribedGraph,
  type GraphDefinition,
  type MachineParts,
} from "../graph/definition.ts";
import { value } from "../graph/channels/last-value.ts";
import { ephemeral } from "../graph/channels/ephemeral.ts";
import { reduce } from "../graph/channels/reduce.ts";
import type { ChannelRule } from "../graph/channel.ts";
import { END, send } from "../graph/commands.ts";
import type { Ctx } from "../graph/node-context.ts";
import { type JsonObject, toStorable } from "../model/json.ts";
import type { Timer } from "../model/machine-timer.ts";
import { computeMacrostep, PrecomputedMacrosteps } from "./precomputed-macrosteps.ts";
import { RunningPromiseActors } from "./running-promise-actors.ts";
import {
  actorNode,
  ACTIONS_NODE,
  nameInNamespace,
  TRANSITION_NODE,
  WAIT_NODE,
} from "./machine-node-names.ts";
import { acceptedEventSchema, refusesAnswer, whyNotEvent } from "./event-validation.ts";
import { changedChildren } from "./stored-child-machines.ts";
import type { ActorResult, MachineEvent } from "./machine-driver.ts";
import {
  storedChildrenOf,
  EVENTS_KEY,
  INPUT_KEY,
  isStartedPromiseActor,
  OUTPUT_KEY,
  type PendingEvent,
  SNAPSHOT_KEY,
  snapshotOf,
  STATE_KEY,
  storedMachineOf,
  type StoredMachine,
  timersOf,
  VERSION_KEY,
  type StartedPromiseActor,
} from "./machine-state.ts";
import { toStorableWithErrors, toStoredThrown } from "./stored-errors.ts";
import { type MachineVersions, versionOfState } from "./machine-versions.ts";
import { hasActorReference, REFERENCE_FAULT } from "./stored-actor-references.ts";
import { writeFault, updateEnteringState } from "./state-edits.ts";
import {
  type Marked,
  precomputedKey,
  isEventDue,
  transitionStep,
  timerUpdate,
  STORABLE,
} from "./transition-step.ts";
import {
  continuationError,
  eventsAcceptedAtWork,
  versionedQuestion,
  isAskedBeforeMigration,
  migratedQuestion,
} from "./machine-questions.ts";
import { machineSchemasOf, whyNeedsInput, firstContext } from "./machine-input.ts";

/** The number of steps that an event takes while promise actors run: one step processes the event, and one waits for the actors again. */
const STEPS_OF_EVENT = 2;

/** The default of `recursion_limit`, in steps. Each promise actor takes two steps, and a machine may well run a hundred of them. */
const RECURSION_LIMIT = 1_000;

/** Channel rules for a state with any keys, because the keys of a machine's context are known only when the machine runs. */
class OpenRules extends Map<string, ChannelRule> {
  override get(key: string): ChannelRule {
    return super.get(key) ?? CONTEXT_RULE;
  }
  override has(): boolean {
    return true;
  }
}

const CONTEXT_RULE = value();

/**
 * The description that all child machines have in common, without its member `machine`. Their state and output schemas have the keys of
 * `rules` and those of the context.
 */
const CHILD: DescribedGraph = Object.freeze({
  name: null,
  rules: new Map([STATE_KEY, OUTPUT_KEY].map((key) => [key, CONTEXT_RULE])),
  required: [],
  context: undefined,
  input: new Map(),
  output: null,
  outputSchemas: null,
});

/**
 * Creates a graph that runs a machine. {@link TRANSITION_NODE} processes events, each in a separate macrostep; its checkpoint contains the
 * machine's snapshot. Then come the tasks that the snapshot asks for, and the node runs again: {@link ACTIONS_NODE} runs custom actions, and
 * each promise actor has a task of its own, so that its result is stored before the machine processes it. If there are neither actions nor
 * actors, {@link WAIT_NODE} waits for an event of a client or a timer.
 * @param actors the `src` of every promise actor that any of the versions may start
 */
export function createMachineGraph(
  versions: MachineVersions,
  actors: readonly string[],
  views: Pick<MachineParts, "chart" | "drawing">,
): GraphDefinition {
  const running = new RunningPromiseActors();
  const precomputed = new PrecomputedMacrosteps();
  const snapshotChannel = {
    ...value<StoredMachine>(),
    read: (write: unknown, at: string) =>
      (write as Marked | null)?.[STORABLE] === true ? write : toStorable(write, at),
  };
  const runActor = async (input: unknown, ctx: Ctx) => {
    // An input of another form comes from a task that an earlier version of Heddle has planned. The task ends without a result, and
    // {@link TRANSITION_NODE} then fails with an error that says why the state cannot be used.
    if (!isStartedPromiseActor(input)) return undefined;
    const { version, ...actor } = input as ActorTaskInput;
    // The state must be migrated before the actor runs, so the task ends without a result. The migrated machine starts the actor again.
    if (versions.mustMigrate(version)) return undefined;
    const driver = versions.driverOf(version);
    const mailbox = ctx["~mailbox"];
    const interruptions = mailbox && {
      isDue: () => isEventDue({ driver, run: ctx.runId, precomputed }, mailbox),
      watch: (arrived: () => void) => mailbox.watch(arrived),
    };
    const result = await running.waitFor(ctx.runId, keyOf(actor), {
      start: (emit) => driver.startActor(actor, emit),
      emit: (event) => ctx["~emitIn"]?.(actor.ns ?? "", event),
      signal: ctx.signal,
      interruptions,
    });
    // The run was stopped. A task that has not ended is planned again when the thread goes on.
    if (result === undefined) ctx.signal.throwIfAborted();
    // Another actor has ended first, or the machine can take an event.
    if (result === undefined) return undefined;
    const stored = toStoredResult(result, actor);
    return { [EVENTS_KEY]: [{ actor: actor.at, start: actor.start, result: stored }] };
  };
  const definition = defineGraph({
    state: {
      [STATE_KEY]: value(),
      [OUTPUT_KEY]: value(),
      [SNAPSHOT_KEY]: snapshotChannel,
      // Collects the results of all actors that end in one superstep. Writing an empty list clears it.
      [EVENTS_KEY]: reduce<readonly PendingEvent[]>([], (all, more) =>
        more.length === 0 ? [] : [...all, ...more],
      ),
      ...(versions.areDeclared && { [VERSION_KEY]: value() }),
      [INPUT_KEY]: ephemeral(),
    },
    nodes: {
      [TRANSITION_NODE]: (state: JsonObject, ctx: Ctx) => {
        const { update, work, machine } = transitionStep(versions, precomputed, state, ctx);
        // Timers and actions contain values that the machine's code has made. Everything else can be stored as it is.
        if (machine.timers.length === 0 && machine.actions.length === 0) machine[STORABLE] = true;
        if (work.length === 0) running.stop(ctx.runId);
        else running.retain(ctx.runId, new Set(work.map(keyOf)));
        return update;
      },
      [WAIT_NODE]: async (stored: JsonObject, ctx: Ctx) => {
        // A timer has fired while the machine was waiting. Its event is processed, and no client is asked for an event.
        if ((stored[EVENTS_KEY] as readonly PendingEvent[]).length > 0) return {};
        const { driver, state } = versions.continuationOf(stored);
        // The state to which the machine was migrated invokes actors, or sets timers: this is done before a client is asked for an event. An
        // answer that is already stored is processed first.
        const { work, delayed = [] } = storedMachineOf(state);
        if (work.length + delayed.length > 0 && ctx["~isAnswered"] !== true) return {};
        const accepted = driver.accepted(snapshotOf(state));
        const whyFails = (sent: MachineEvent) => {
          const step = { before: snapshotOf(state), message: { to: [], event: sent } };
          const key = precomputedKey(ctx.runId);
          const made = precomputed.compute(stored[SNAPSHOT_KEY], key, () => computeMacrostep(driver, step));
          return made.result === undefined ? made.why : undefined;
        };
        const event = await ctx.interrupt(versionedQuestion(driver, state, accepted), {
          schema: acceptedEventSchema(accepted, driver.schemas, whyFails),
        });
        return { [EVENTS_KEY]: [{ event }] };
      },
      [ACTIONS_NODE]: async (state: JsonObject, ctx: Ctx) => {
        // The actions need the driver of the version that made the state: they are computed from the snapshot before the macrostep, and a
        // migration converts only the snapshot after the macrostep.
        const driver = versions.driverOf(versionOfState(state));
        for (const step of storedMachineOf(state).actions) {
          // oxlint-disable-next-line no-await-in-loop -- an action may build on those before it
          for (const effect of computeMacrostep(driver, step).effects)
            if (effect.kind === "action") await effect.run();
        }
        // Ends this superstep, which otherwise waits for all actors: waiting events are then processed.
        running.endWaits(ctx.runId);
      },
      ...Object.fromEntries(actors.map((src) => [actorNode(src), runActor])),
    },
    edges: {
      start: TRANSITION_NODE,
      [TRANSITION_NODE]: (state: JsonObject) => nextNodes(versions, state),
      [WAIT_NODE]: TRANSITION_NODE,
      [ACTIONS_NODE]: TRANSITION_NODE,
      ...Object.fromEntries(actors.map((src) => [actorNode(src), TRANSITION_NODE])),
    },
  });
  return Object.freeze({
    ...definition,
    hash: versions.hash,
    rules: new OpenRules(definition.rules),
    // The graph declares no input keys: the machine gets the whole input, under the state key `inputKey`.
    input: new Map(),
    machine: {
      ...views,
      inputKey: INPUT_KEY,
      schemas: machineSchemasOf(versions),
      recursionLimit: RECURSION_LIMIT,
      refusesAnswer: (answer: unknown, question: unknown) =>
        isAskedBeforeMigration(versions, question)
          ? whyNotEvent(answer, versions, "takes")
          : refusesAnswer(answer, question),
      migratedQuestion: (values: JsonObject) => migratedQuestion(versions, values),
      continuationError: (values: JsonObject, isChanged: boolean) =>
        continuationError(versions, values, isChanged),
      refusesEvent: (event: unknown) => whyNotEvent(event, versions, "takes"),
      acceptedEvents: (values: JsonObject) => eventsAcceptedAtWork(versions, values),
      writeFault: (write: JsonObject, values: () => JsonObject) => writeFault(versions, write, values),
      updateEnteringState: (name: string, values: JsonObject) => updateEnteringState(versions, name, values),
      stateNames: () => versions.current.states,
      whyNotInput: (input: unknown) => (hasActorReference(input) ? REFERENCE_FAULT.value : undefined),
      whyNeedsInput: () => whyNeedsInput(versions.current),
      firstContext: () => firstContext(versions.current),
      timers: (values: JsonObject) => timersOf(values).map(({ id, due }) => ({ id, due })),
      takenRuns: (update: JsonObject | null) =>
        (update?.[SNAPSHOT_KEY] as Partial<StoredMachine> | undefined)?.taken ?? [],
      changedChildren,
      childOfTask: (input: unknown) => {
        const { ns, start } = (isStartedPromiseActor(input) ? input : {}) as Partial<StartedPromiseActor>;
        return ns === undefined || start === undefined ? null : { ns, start };
      },
      children: (values: JsonObject) => storedChildrenOf(values).map(({ start }) => start),
      childMachines: () =>
        new Map(
          versions.current.childMachines().map(({ path, firstContext: first }) => {
            const machine = { inputKey: INPUT_KEY, firstContext: first };
            return [path.map(nameInNamespace).join("|"), { ...CHILD, machine }];
          }),
        ),
      stepsOfEvent: STEPS_OF_EVENT,
      runEnded: (run: string) => running.stop(run),
      timerUpdate: (values: JsonObject, timer: Timer) => timerUpdate(versions, values, timer),
    },
  });
}

/** The input of the task that runs a promise actor. `version`: the version of the machine that has started the actor. */
interface ActorTaskInput extends StartedPromiseActor {
  readonly version: string | null;
}

/** @throws ServiceError `value.unstorable` if the actor's output cannot be stored */
function toStoredResult(result: ActorResult, { at }: StartedPromiseActor): ActorResult {
  if ("error" in result) return { error: toStoredThrown(result.error) };
  const output = toStorableWithErrors(result.output ?? null, `the output of ${at.join(".")}`);
  return hasActorReference(output)
    ? { error: toStoredThrown(new TypeError(`The output ${REFERENCE_FAULT.value}`)) }
    : { output };
}

/** The key of a promise actor among those of its run. */
const keyOf = ({ at, start }: Pick<StartedPromiseActor, "at" | "start">) => `${start}:${at.join(".")}`;

/** The tasks of the next step, after {@link TRANSITION_NODE}. */
function nextNodes(versions: MachineVersions, state: JsonObject) {
  const { work, actions, timers, rest } = storedMachineOf(state);
  const version = versionOfState(state);
  const sent = work.map((one) => send(actorNode(one.src), { ...one, version } satisfies ActorTaskInput));
  if (actions.length > 0) return [ACTIONS_NODE, ...sent];
  if (rest["status"] !== "active") return END;
  if (sent.length > 0) return sent;
  if (timers.length > 0) return WAIT_NODE;
  // A machine that handles no event would wait forever, so the run ends. If the version of the state is missing, {@link WAIT_NODE} reports
  // that.
  return versions.find(version)?.accepted(snapshotOf(state)).events.length === 0 ? END : WAIT_NODE;
}
