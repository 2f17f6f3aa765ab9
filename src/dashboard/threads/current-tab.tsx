import { useEffect, useMemo } from "preact/hooks";
import { findRuns } from "../api/client.ts";
import { hasRunEnded, type JsonRecord, type ShortenedState } from "../api/records.ts";
import { conversationKey, toChatMessage, type ChatMessage } from "../live/chat-messages.ts";
import {
  DEFAULT_LIST_LIMIT,
  countOmittedElements,
  type ThreadSubscription,
} from "../live/thread-subscription.ts";
import { INVALID_RESUME_ERROR } from "../live/answer-requests.ts";
import type { Trace } from "../live/trace.ts";
import { SlowestNodeLink } from "../run/slowest-node-link.tsx";
import { EmptyState, Loading } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { errorLine } from "../components/one-line-text.ts";
import { currentLocation, runHref, threadHref } from "../app/page-location.ts";
import { MessageBubble } from "./message-bubble.tsx";
import { ConversationView } from "./conversation-view.tsx";
import { useConversationScroll } from "./use-conversation-scroll.ts";
import { RunningMachineEvents } from "./running-machine-events.tsx";
import { MachineTimers } from "./machine-timers.tsx";
import { AnswerOrRunForm, interruptsOf } from "./answer-or-run-form.tsx";

/**
 * The tab with the current state of the thread: its conversation and other values, the messages that are being
 * streamed, and the form for an answer or a new run.
 */
export function CurrentTab({ watch }: { readonly watch: ThreadSubscription }) {
  void watch.changes.count;
  const state = watch.state.value;
  const latest = watch.runs.value.find(({ status }) => status !== "pending");
  const trace = latest === undefined ? undefined : watch.traces.get(latest.run_id);
  const values = state?.values ?? NO_VALUES;
  const { key, conversation, ids, calls } = useMemo(() => readConversation(values), [values]);
  const omitted = key === null ? 0 : countOmittedElements(state, key);
  const streamed = streamedMessages(
    trace,
    ids,
    omitted > 0,
    (key !== null || Array.isArray(values["messages"])) && (latest === undefined || hasRunEnded(latest)),
  );
  const { [key ?? ""]: _, ...rest } = values;
  const wanted = currentLocation.value.query.get("message");
  const isWantedUnread = wanted !== null && state !== null && !ids.has(wanted);
  const isWantedMissing = isWantedUnread && omitted === 0 && streamed.every(({ id }) => id !== wanted);
  const { box, follow, isFollowing } = useConversationScroll({
    contents: [omitted + conversation.length, streamed.map(({ text }) => text.length).join(), latest?.status],
    wanted,
    isWantedMissing,
    isWhole: omitted === 0,
    readWhole: () => watch.showElements(Infinity),
  });
  useEffect(() => {
    watch.isFollowing = isFollowing;
    return () => (watch.isFollowing = () => true);
  }, [watch]);
  const isWantedOmitted = isWantedUnread && omitted > 0;
  useEffect(() => {
    if (isWantedOmitted) watch.showElements(Infinity);
  }, [isWantedOmitted]);
  const known = trace?.error ?? watch.record.value?.error ?? null;
  const hasFailed = latest?.status === "error";
  const failedTask = state?.tasks.find(({ error }) => error !== null);
  // After an edit of the state, the thread's record no longer contains the error, so it is read from the run.
  const { value: failed } = useResource(
    async () => (hasFailed && known === null ? findRuns({ thread_id: watch.id }, 1, null) : undefined),
    [latest?.run_id, hasFailed && known === null],
  );
  const found = failed?.runs.find(({ run_id }) => run_id === latest?.run_id);
  const why = known ?? found?.error ?? null;
  // The form for the answer shows this error, so it is not shown here as well.
  const isShownBelow =
    why?.error === INVALID_RESUME_ERROR && state !== null && interruptsOf(state).length > 0;
  const isReading = state === null && watch.error.value === null;
  const isEmpty =
    !isReading && conversation.length === 0 && streamed.length === 0 && Object.keys(rest).length === 0;
  return (
    <div class="talk">
      <div class="flow" ref={box} tabIndex={0} aria-label="Conversation and state">
        {isReading && <Loading isPadded />}
        {isEmpty && latest?.status !== "success" && (
          <EmptyState title="No state yet">
            <p class="dim">Start a run below.</p>
          </EmptyState>
        )}
        {isEmpty && latest?.status === "success" && <p class="dim pad">The state has no values.</p>}
        {(omitted > 0 || conversation.length > DEFAULT_LIST_LIMIT) && (
          <ShownMessages watch={watch} shown={conversation.length} total={omitted + conversation.length} />
        )}
        {conversation.length > 0 && (
          <ConversationView
            thread={watch.id}
            messages={conversation}
            omitted={omitted}
            calls={calls}
            wanted={wanted}
            scroll={box}
            isFollowing={isFollowing}
            onResize={follow}
          />
        )}
        {isWantedMissing && (
          <div class="note" role="alert">
            <span>The message of this link is not in the conversation. It may have been removed.</span>
            <a href={threadHref(watch.id)}>Open thread</a>
          </div>
        )}
        {streamed.length > 0 && (
          <ol
            class="messages coming"
            aria-live="polite"
            aria-busy={latest !== undefined && !hasRunEnded(latest)}
          >
            {streamed.map((message) => (
              <MessageBubble
                key={message.id}
                message={message}
                calls={calls}
                isComing={latest !== undefined && !hasRunEnded(latest)}
                node={nodeOf(trace, message)}
              />
            ))}
          </ol>
        )}
        <MachineTimers values={values} />
        <RunningMachineEvents watch={watch} values={values} run={watch.active} />
        <StateValues values={rest} />
        <ShortenedLists watch={watch} state={state} names={Object.keys(rest)} />
        {latest?.slowest_node !== undefined && hasRunEnded(latest) && (
          <p class="dim">
            <SlowestNodeLink run={latest} label="Slowest node of the last run: " />
          </p>
        )}
        {hasFailed && (
          <div class="failure" role="alert">
            <span>
              {isShownBelow
                ? "The last answer was refused."
                : `The last run failed${why === null ? "" : `: ${errorLine(why.error, why.message)}`}.`}{" "}
              <a
                href={runHref(
                  watch.id,
                  latest.run_id,
                  failedTask === undefined ? {} : { task: failedTask.id },
                )}
              >
                {failedTask === undefined ? "Open run" : "View error"}
              </a>
            </span>
          </div>
        )}
        {latest !== undefined && !hasRunEnded(latest) && (
          <p class="working">
            <span class="dot busy" aria-hidden="true" /> {workOf(trace)}{" "}
            <a href={runHref(watch.id, latest.run_id)}>Open run</a>
          </p>
        )}
      </div>
      {state !== null && <AnswerOrRunForm watch={watch} state={state} />}
    </div>
  );
}

/**
 * Returns whether a channel is internal, such as the snapshot of a machine. Two channels with such names are not:
 * `__state__` is the state of a machine, and `__end__` the return value of a function (`entrypoint`).
 */
const isInternal = (name: string): boolean =>
  /^__.+__$/.test(name) && name !== "__state__" && name !== "__end__";

function StateValues({ values }: { readonly values: JsonRecord }) {
  const entries = Object.entries(values);
  const internal = Object.fromEntries(entries.filter(([name]) => isInternal(name)));
  const shown = Object.fromEntries(entries.filter(([name]) => !isInternal(name)));
  if (entries.length === 0) return null;
  return (
    <section class="card state" aria-label="State">
      <h3>State</h3>
      {Object.keys(shown).length > 0 && <JsonTree value={shown} open={2} />}
      {Object.keys(internal).length > 0 && (
        <details class="more">
          <summary>Internal channels</summary>
          <JsonTree value={internal} open={1} />
        </details>
      )}
    </section>
  );
}

/** *Show earlier messages* multiplies the number of shown messages by this factor. */
const MORE_FACTOR = 2;

interface ShownMessagesProps {
  readonly watch: ThreadSubscription;
  readonly shown: number;
  readonly total: number;
}

/**
 * Says how much of a long conversation is shown, with buttons that show more. When all of it is shown, the text stays,
 * so that the messages below do not move.
 */
function ShownMessages({ watch, shown, total }: ShownMessagesProps) {
  if (shown === total) return <p class="dim earlier">All {total.toLocaleString()} messages.</p>;
  const next = Math.min(total, shown * MORE_FACTOR);
  return (
    <p class="dim earlier">
      The last {shown.toLocaleString()} of {total.toLocaleString()} messages.
      {next < total && (
        <button type="button" class="quiet link" onClick={() => watch.showElements(next)}>
          Show {(next - shown).toLocaleString()} earlier messages
        </button>
      )}
      <button type="button" class="quiet link" onClick={() => watch.showElements(Infinity)}>
        Show all
      </button>
    </p>
  );
}

interface ShortenedListsProps {
  readonly watch: ThreadSubscription;
  readonly state: ShortenedState | null;
  /** The names of the values that are shown. */
  readonly names: readonly string[];
}

/** Says which of the shown lists were not read whole. */
function ShortenedLists({ watch, state, names }: ShortenedListsProps) {
  const short = names.filter((name) => countOmittedElements(state, name) > 0);
  if (short.length === 0) return null;
  return (
    <p class="dim">
      {short.map((name) => (
        <span key={name}>
          <code>{name}</code>: the last {state?.list_limit.toLocaleString()} of{" "}
          {state?.list_lengths[name]?.toLocaleString()} elements.{" "}
        </span>
      ))}
      <button type="button" class="quiet link" onClick={() => watch.showElements(Infinity)}>
        Show all elements
      </button>
    </p>
  );
}

/**
 * The values of a thread without a state. One constant object, because a new object in each rendering would count as a
 * change.
 */
const NO_VALUES: JsonRecord = {};

/**
 * Returns the streamed messages that the state does not contain yet. `known`: the ids of the state's messages that were
 * read. `isShortened`: whether earlier messages of the state were not read; they may include messages of this run.
 * `isOver`: whether the run has ended and the state has a conversation, which then contains all messages of the run.
 */
function streamedMessages(
  trace: Trace | undefined,
  known: ReadonlySet<unknown>,
  isShortened: boolean,
  isOver: boolean,
): readonly ChatMessage[] {
  if (trace === undefined || isOver) return [];
  const messages = [...trace.messages.values()].filter(({ id }) => !trace.abandonedMessages.has(id));
  const lastKnown = isShortened ? messages.findLastIndex(({ id }) => known.has(id)) : -1;
  // A task that is in progress may still be writing a message that began before others which are in the state.
  const writing = new Set(
    [...trace.tasks.values()]
      .filter(({ status }) => status === "running" || status === "retrying")
      .flatMap((task) => task.messages),
  );
  return messages.filter(
    ({ id, type }, index) => !known.has(id) && type !== "human" && (index > lastKnown || writing.has(id)),
  );
}

/**
 * Finds the conversation in a state: its key, its messages and their ids, and the names of the called tools by the id
 * of the call.
 */
function readConversation(values: JsonRecord) {
  const key = conversationKey(values);
  const conversation = key === null ? [] : (values[key] as readonly JsonRecord[]);
  const calls = conversation
    .filter(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 0)
    .flatMap((message) => toChatMessage(message).calls)
    .map((call) => [call.id, call.name] as const);
  return { key, conversation, ids: new Set(conversation.map(({ id }) => id)), calls: new Map(calls) };
}

const nodeOf = (trace: Trace | undefined, { id }: ChatMessage): string | undefined =>
  trace === undefined
    ? undefined
    : [...trace.tasks.values()].find((task) => task.messages.includes(id))?.name;

function workOf(trace: Trace | undefined): string {
  const names = [...(trace?.tasks.values() ?? [])]
    .filter(({ status }) => status === "running" || status === "retrying")
    .map(({ name, status }) => (status === "retrying" ? `${name} (retrying)` : name));
  return names.length === 0 ? "Running…" : `${[...new Set(names)].join(", ")}…`;
}
