import { useEffect, useRef } from "preact/hooks";
import { isDone } from "../api/records.ts";
import { conversationKey, conversationOf, type ChatMessage } from "../live/chat-messages.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import type { Trace } from "../live/trace.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { errorLine } from "../components/value-text.ts";
import { currentLocation, hrefOf, runHref } from "../app/page-location.ts";
import { MessageBubble } from "./message-bubble.tsx";
import { EventsAtWork } from "./events-at-work.tsx";
import { MachineTimers } from "./machine-timers.tsx";
import { Composer } from "./composer.tsx";

/** The chat: the current conversation and state, the messages being streamed, and the input area. */
export function ChatTab({ watch }: { readonly watch: ThreadSubscription }) {
  void watch.changes.count;
  const state = watch.state.value;
  const latest = watch.runs.value.find(({ status }) => status !== "pending");
  const trace = latest === undefined ? undefined : watch.traces.get(latest.run_id);
  const values = valuesOf(watch, trace);
  const key = conversationKey(values);
  const conversation = conversationOf(values);
  const streamed = streamedMessages(
    trace,
    conversation,
    key !== null && (latest === undefined || isDone(latest)),
  );
  const { [key ?? ""]: _, ...rest } = values;
  const calls = new Map(
    conversation.flatMap((message) => message.calls.map((call) => [call.id, call.name] as const)),
  );
  const wanted = currentLocation.value.query.get("message");
  const end = useFollow(
    [conversation.length, streamed.map(({ text }) => text.length).join(), latest?.status],
    wanted === null,
  );
  const why = trace?.error ?? watch.record.value?.error ?? null;
  const isReading = state === null && watch.error.value === null;
  const isEmpty =
    !isReading && conversation.length === 0 && streamed.length === 0 && Object.keys(rest).length === 0;
  return (
    <div class="talk">
      <div class="flow" ref={end} tabIndex={0} aria-label="Conversation and state">
        {isReading && (
          <p class="dim pad" aria-busy="true">
            Reading its state…
          </p>
        )}
        {isEmpty && (
          <EmptyState title="Nothing has happened on this thread yet.">
            <p class="dim">Start a run below.</p>
          </EmptyState>
        )}
        {conversation.length > 0 && (
          <ol class="messages">
            {conversation.map((message, i) => (
              <MessageBubble
                key={message.id || i}
                message={message}
                calls={calls}
                {...(message.id !== "" && {
                  href: hrefOf(["threads", watch.id], { message: message.id }),
                  isWanted: message.id === wanted,
                })}
              />
            ))}
          </ol>
        )}
        {streamed.length > 0 && (
          <ol class="messages coming" aria-live="polite" aria-busy={latest !== undefined && !isDone(latest)}>
            {streamed.map((message) => (
              <MessageBubble
                key={message.id}
                message={message}
                calls={calls}
                isComing={latest !== undefined && !isDone(latest)}
                node={nodeOf(trace, message)}
              />
            ))}
          </ol>
        )}
        <MachineTimers values={values} />
        <EventsAtWork watch={watch} values={values} run={watch.active} />
        {Object.keys(rest).length > 0 && (
          <section class="card state" aria-label="State">
            <h3>State</h3>
            <JsonTree value={rest} open={2} />
          </section>
        )}
        {latest?.status === "error" && (
          <div class="failure" role="alert">
            <span>
              The last run failed{why === null ? "" : `: ${errorLine(why.error, why.message)}`}.{" "}
              <a href={runHref(watch.id, latest.run_id)}>See where</a>
            </span>
          </div>
        )}
        {latest !== undefined && !isDone(latest) && (
          <p class="working">
            <span class="dot busy" aria-hidden="true" /> {workOf(trace)}{" "}
            <a href={runHref(watch.id, latest.run_id)}>follow the run</a>
          </p>
        )}
      </div>
      {state !== null && <Composer watch={watch} state={state} />}
    </div>
  );
}

/** Returns the newest known state: the record's, or a later one from the stream. */
function valuesOf(watch: ThreadSubscription, trace: Trace | undefined) {
  const state = watch.state.value;
  const last = trace?.stepsOf("").at(-1);
  const isLater = last !== undefined && last.checkpoint > (state?.checkpoint?.checkpoint_id ?? "");
  return (isLater ? last.values : state?.values) ?? {};
}

/** Returns the streamed messages that are not in the state yet. If the state has a conversation, there are none once the run has ended. */
function streamedMessages(
  trace: Trace | undefined,
  conversation: readonly ChatMessage[],
  isOver: boolean,
): readonly ChatMessage[] {
  if (trace === undefined || isOver) return [];
  const known = new Set(conversation.map(({ id }) => id));
  return [...trace.messages.values()].filter(({ id, type }) => !known.has(id) && type !== "human");
}

const nodeOf = (trace: Trace | undefined, { id }: ChatMessage): string | undefined =>
  trace === undefined
    ? undefined
    : [...trace.tasks.values()].find((task) => task.messages.includes(id))?.name;

function workOf(trace: Trace | undefined): string {
  const names = [...(trace?.tasks.values() ?? [])]
    .filter(({ status }) => status === "running" || status === "retrying")
    .map(({ name, status }) => (status === "retrying" ? `${name} (will be tried again)` : name));
  return names.length === 0 ? "Running…" : `${[...new Set(names)].join(", ")}…`;
}

/** Keeps the view scrolled to the end, unless the user has scrolled away from it. `startsAtEnd`: whether it is there at first. */
function useFollow(on: readonly unknown[], startsAtEnd: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(startsAtEnd);
  useEffect(() => {
    const { current } = box;
    const look = () => {
      if (current !== null)
        isAtEnd.current = current.scrollHeight - current.scrollTop - current.clientHeight < 60;
    };
    current?.addEventListener("scroll", look, { passive: true });
    return () => current?.removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, on);
  return box;
}
