import { useState } from "preact/hooks";
import type { StreamEvent } from "../live/trace.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";

/** The number of events shown at once. */
const MAX_EVENTS = 200;

/** The raw events of a stream, oldest first. */
export function EventsTab({
  events,
  note,
}: {
  readonly events: readonly StreamEvent[];
  readonly note?: string;
}) {
  const [text, setText] = useState("");
  const [most, setMost] = useState(MAX_EVENTS);
  const wanted = text.toLowerCase();
  const found =
    wanted === "" ? events : events.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted));
  const shown = found.slice(-most);
  return (
    <div class="pad events">
      <div class="bar">
        <input
          type="search"
          aria-label="Search events"
          placeholder="search events"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <span class="dim">
          {found.length} of {events.length}
        </span>
        <CopyButton text={() => JSON.stringify(found, null, 2)} label="events as JSON" shown="Copy" />
      </div>
      {note !== undefined && <p class="dim">{note}</p>}
      {found.length === 0 && (
        <EmptyState title={events.length === 0 ? "No events yet." : "No event matches."} />
      )}
      {found.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setMost(most + 5 * MAX_EVENTS)}>
          {found.length - shown.length} earlier ones
        </button>
      )}
      <ol>
        {shown.map((event) => (
          <li key={`${event.run_id ?? ""} ${event.id}`}>
            <span class="id">{event.id}</span>
            <code class="name">{event.event}</code>
            <JsonTree value={event.data} open={0} />
          </li>
        ))}
      </ol>
    </div>
  );
}
