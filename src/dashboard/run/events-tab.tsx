import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { LoggedEvent } from "../live/event-log.ts";
import type { StreamEvent } from "../live/trace.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";

/** The number of latest events that are shown before the user asks for more. */
const MAX_EVENTS = 200;

/** The events of a stream as the server has sent them, oldest first. */
export function EventsTab({
  events,
  note,
}: {
  readonly events: readonly LoggedEvent[];
  readonly note?: ComponentChildren;
}) {
  const [text, setText] = useState("");
  const [most, setMost] = useState(MAX_EVENTS);
  const wanted = text.toLowerCase();
  const found =
    wanted === "" ? events : events.filter(({ text: event }) => event.toLowerCase().includes(wanted));
  const shown = found.slice(-most);
  return (
    <div class="pad events">
      <div class="bar">
        <input
          type="search"
          aria-label="Search events"
          placeholder="Search events"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <span class="dim">
          {found.length} of {events.length}
        </span>
        <CopyButton
          text={() => JSON.stringify(found.map(parsedEvent), null, 2)}
          label="events as JSON"
          shown="Copy"
        />
      </div>
      {note !== undefined && <p class="dim">{note}</p>}
      {found.length === 0 && (
        <EmptyState title={events.length === 0 ? "No events yet" : "No matching events"} />
      )}
      {found.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setMost(most + 5 * MAX_EVENTS)}>
          {found.length - shown.length} earlier events
        </button>
      )}
      <ol>
        {shown.map((event) => (
          <EventRow key={`${event.run_id ?? ""} ${event.id}`} event={event} />
        ))}
      </ol>
    </div>
  );
}

function EventRow({ event }: { readonly event: LoggedEvent }) {
  const { data } = useMemo(() => parsedEvent(event), [event]);
  return (
    <li>
      <span class="id">{event.id}</span>
      <code class="name">{event.event}</code>
      <JsonTree value={data} open={0} />
    </li>
  );
}

const parsedEvent = ({ text }: LoggedEvent) => JSON.parse(text) as StreamEvent;
