import { useState } from "preact/hooks";
import { getPossibleEvents, postMachineEvent } from "../api/client.ts";
import { hasRunEnded, isJsonRecord, type JsonRecord, type Run } from "../api/records.ts";
import { useResource } from "../components/use-resource.ts";
import { useSubmit } from "../components/use-submit.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { EventAnswer } from "./event-answer.tsx";

/**
 * The text about a sent event, by the status of the run that delivers it. For any other status, the text is "not
 * accepted".
 */
const EVENT_TEXTS: Readonly<Record<string, string>> = {
  pending: "queued",
  running: "processing",
  success: "accepted",
  interrupted: "cancelled",
};

interface RunningMachineEventsProps {
  readonly watch: ThreadSubscription;
  readonly values: JsonRecord;
  /** The run in progress; undefined if there is none. */
  readonly run: Run | undefined;
}

/**
 * Shows buttons for the events that a machine accepts while its child actors are working, and whether the sent events
 * were accepted.
 */
export function RunningMachineEvents({ watch, values, run }: RunningMachineEventsProps) {
  const isMachine = isJsonRecord(values["__snapshot__"]);
  const isAtWork = isMachine && run !== undefined && !hasRunEnded(run);
  const [sent, setSent] = useState<readonly { readonly type: string; readonly run: string }[]>([]);
  /** Whether the user has entered something that has not been sent. */
  const [isEdited, setEdited] = useState(false);
  const submit = useSubmit();
  const possible = useResource(
    async () => (isAtWork ? (await getPossibleEvents(watch.id)).events : []),
    [watch.id, isAtWork, JSON.stringify(values["__state__"])],
  );
  const events = isAtWork ? (possible.value ?? []) : [];
  if (events.length === 0 && sent.length === 0) return null;
  const send = async (event: JsonRecord) => {
    const { run_id } = await postMachineEvent(watch.id, event);
    setEdited(false);
    setSent((before) => [...before, { type: String(event["type"]), run: run_id }]);
  };
  const fateOf = (id: string) => {
    const status = watch.runs.value.find(({ run_id }) => run_id === id)?.status ?? "pending";
    return EVENT_TEXTS[status] ?? "not accepted";
  };
  return (
    <section class="card state" aria-label="Events">
      <h3>Events</h3>
      {events.length > 0 && (
        <div aria-busy={submit.isSending} onInput={() => setEdited(true)}>
          <LeaveConfirmation
            isEdited={isEdited}
            title="Leave without sending?"
            text="The data of an event have not been sent and will be lost."
          />
          <EventAnswer
            key={sent.length}
            events={events}
            isDisabled={submit.isSending}
            onSend={(event) => submit.start(() => send(event))}
          />
          {submit.error !== null && (
            <p class="failure" role="alert">
              {submit.error}
            </p>
          )}
        </div>
      )}
      {sent.length > 0 && (
        <ul aria-label="Sent events">
          {sent.map(({ type, run: id }) => (
            <li key={id}>
              <code>{type}</code> {fateOf(id)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
