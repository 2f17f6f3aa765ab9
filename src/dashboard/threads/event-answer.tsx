import { useState } from "preact/hooks";
import { type InterruptQuestion, isJsonRecord, type JsonRecord } from "../api/records.ts";
import { JsonTree } from "../components/json-tree.tsx";
import { Markdown } from "../components/markdown.tsx";
import { findQuestionTextKey, toLine } from "../components/one-line-text.ts";
import { KeyValueFields } from "./key-value-fields.tsx";

/**
 * Returns the types of the events that a machine waits for, such as `APPROVE` or `order.*`. Null if the question is
 * not that of a machine.
 */
export function awaitedEvents({ value }: Pick<InterruptQuestion, "value">): readonly string[] | null {
  if (!isJsonRecord(value) || !("state" in value && "tags" in value && "meta" in value)) return null;
  const { events } = value;
  const isList = Array.isArray(events) && events.every((event) => typeof event === "string");
  return isList ? events : null;
}

/** Returns the questions in the `meta` of the states in which a machine waits, with the ids of these states. */
function metaQuestions({
  meta: metas,
}: JsonRecord): readonly { readonly id: string; readonly text: string }[] {
  return Object.entries(isJsonRecord(metas) ? metas : {}).flatMap(([id, meta]) => {
    const key = findQuestionTextKey(meta);
    return key === undefined ? [] : [{ id, text: String((meta as JsonRecord)[key]) }];
  });
}

/**
 * Formats any question as one line of at most `most` characters. A machine without a text gets a line about its state
 * and events.
 */
export function questionLine(value: unknown, most?: number): string {
  const events = awaitedEvents({ value });
  if (events === null || !isJsonRecord(value)) return toLine(readablePart(value), most);
  const [asked] = metaQuestions(value);
  const awaited = events.length === 0 ? "a timer" : events.join(", ");
  return toLine(asked?.text ?? `Waiting in ${stateText(value["state"])} for ${awaited}`, most);
}

/**
 * Replaces an object that has no question's text ({@link findQuestionTextKey}) by its first non-empty string, as `key:
 * text`. Returns any other value unchanged.
 */
function readablePart(value: unknown): unknown {
  if (!isJsonRecord(value) || findQuestionTextKey(value) !== undefined) return value;
  const text = Object.entries(value).find(([, one]) => typeof one === "string" && one.trim() !== "");
  return text === undefined ? value : text.join(": ");
}

/** Formats the state value of a machine as the paths of its innermost states, such as `charging.card`. */
export function stateText(state: unknown): string {
  const paths = (value: unknown): readonly string[] =>
    isJsonRecord(value)
      ? Object.entries(value).flatMap(([name, inner]) => {
          const deeper = paths(inner);
          return deeper.length === 0 ? [name] : deeper.map((path) => `${name}.${path}`);
        })
      : [String(value)];
  return paths(state).join(", ");
}

/** Shows the questions of a waiting machine and, below them, its state. */
export function WaitingMachineState({ value }: { readonly value: unknown }) {
  const { events: _, ...state } = value as JsonRecord;
  return (
    <>
      {metaQuestions(state).map(({ id, text }) => (
        <Markdown key={id} text={text} class="asked" />
      ))}
      <JsonTree value={state} open={1} />
    </>
  );
}

interface EventAnswerProps {
  readonly events: readonly string[];
  readonly isDisabled: boolean;
  /**
   * `clicks`: the `detail` of the click event: 2 for the second click of a double click, 0 if the event was sent with
   * the keyboard.
   */
  readonly onSend: (event: JsonRecord, clicks: number) => void;
}

/**
 * Buttons for the events that a machine accepts, which send them; a field for the event type if it accepts a wildcard
 * such as `order.*`; and fields for the event's data.
 */
export function EventAnswer({ events, isDisabled, onSend }: EventAnswerProps) {
  const [other, setOther] = useState("");
  const [data, setData] = useState<unknown>(undefined);
  const [isWrong, setWrong] = useState(false);
  const isClosed = isDisabled || isWrong;
  const send = (type: string, clicks: number) =>
    onSend({ ...(data as JsonRecord | undefined), type }, clicks);
  const named = events.filter((event) => !event.endsWith("*"));
  const open = events.filter((event) => event.endsWith("*"));
  if (events.length === 0) return <p class="hint">Waiting for a timer; no event is accepted.</p>;
  return (
    <>
      <details>
        <summary>Event data</summary>
        <KeyValueFields
          reserved="type"
          onChange={(given, isFault) => {
            setData(given);
            setWrong(isFault);
          }}
        />
      </details>
      <div class="ways">
        {named.length > 0 && (
          <div class="ways" role="group" aria-label="Event">
            {named.map((event) => (
              <button
                key={event}
                type="button"
                disabled={isClosed}
                onClick={({ detail }) => send(event, detail)}
              >
                {event}
              </button>
            ))}
          </div>
        )}
        {open.length > 0 && (
          <form
            class="ways"
            onSubmit={(event) => {
              event.preventDefault();
              if (other !== "" && !isClosed) send(other, 0);
            }}
          >
            <input
              aria-label="Event type"
              placeholder={open.join(", ")}
              value={other}
              onInput={({ currentTarget }) => setOther(currentTarget.value)}
            />
            <button disabled={other === "" || isClosed}>Send</button>
          </form>
        )}
      </div>
    </>
  );
}
