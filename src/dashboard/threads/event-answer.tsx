import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  type InterruptQuestion,
  isJsonRecord,
  type JsonRecord,
  type JsonSchema,
  type PossibleEvent,
} from "../api/records.ts";
import type { AnswerFault } from "../live/answer-requests.ts";
import { fieldPathOf } from "../components/form-schema.ts";
import { JsonTree } from "../components/json-tree.tsx";
import { Markdown } from "../components/markdown.tsx";
import { findQuestionTextKey, toOneLine } from "../components/one-line-text.ts";
import { SchemaFields } from "../components/schema-form.tsx";
import { useFormValidation } from "../components/use-form-validation.ts";
import { FaultLines } from "./answer-fields.tsx";
import { KeyValueFields } from "./key-value-fields.tsx";

/**
 * Returns the types of the events that a machine waits for, such as `APPROVE` or `order.*`. Null if the question is
 * not that of a machine.
 */
export function awaitedEventTypes({ value }: Pick<InterruptQuestion, "value">): readonly string[] | null {
  if (!isJsonRecord(value) || !("state" in value && "tags" in value && "meta" in value)) return null;
  const { events } = value;
  const isList = Array.isArray(events) && events.every((event) => typeof event === "string");
  return isList ? events : null;
}

/**
 * Returns the events of a machine's question with their schemas, which are null if the machine declares none. The
 * response schema of a machine with schemas has an `anyOf` with a schema for each event, in the order of the events.
 */
export function possibleEventsOf(
  events: readonly string[],
  { response_schema: schema }: Pick<InterruptQuestion, "response_schema">,
): readonly PossibleEvent[] {
  const each = schema?.anyOf?.length === events.length ? schema.anyOf : [];
  return events.map((type, index) => {
    const own = each[index];
    return { type, schema: own === undefined ? null : extractEventSchema(own, `#/anyOf/${index}`) };
  });
}

/** Rewrites the references within a part of a schema, at the pointer `at`, so that the part is a schema of its own. */
const extractEventSchema = (schema: JsonSchema, at: string): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (name, value: unknown) =>
    name === "$ref" && typeof value === "string" && value.startsWith(at)
      ? `#${value.slice(at.length)}`
      : value,
  ) as JsonSchema;

/** Returns the schema of an event's data, without its `type`. Null if it has no fields that a form could show. */
function dataSchemaOf({ type, schema }: PossibleEvent): JsonSchema | null {
  if (schema?.properties === undefined || type.endsWith("*")) return null;
  const { type: _, ...properties } = schema.properties;
  if (Object.keys(properties).length === 0) return null;
  return { ...schema, properties, required: (schema.required ?? []).filter((name) => name !== "type") };
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
  const events = awaitedEventTypes({ value });
  if (events === null || !isJsonRecord(value)) return toOneLine(readablePart(value), most);
  const [asked] = metaQuestions(value);
  const awaited = events.length === 0 ? "a timer" : events.join(", ");
  return toOneLine(asked?.text ?? `Waiting in ${stateText(value["state"])} for ${awaited}`, most);
}

/** Returns a text for the user who is about to start a run that drops these pending questions. */
export function lostQuestionsText(questions: readonly Pick<InterruptQuestion, "value">[]): string {
  const asked = questions.map(({ value }) => `“${questionLine(value)}”`).join(" and ");
  const noun = questions.length === 1 ? "question" : "questions";
  return `The thread waits for an answer to ${asked}. The new run drops the ${noun}, which can then no longer be answered.`;
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

/** Shows the questions of a waiting machine and, below them, its state, with its tags and meta if it has any. */
export function WaitingMachineState({ value }: { readonly value: unknown }) {
  const { events: _, ...state } = value as JsonRecord;
  const shown = Object.fromEntries(
    Object.entries(state).filter(([name, one]) => (name !== "tags" && name !== "meta") || !isEmpty(one)),
  );
  return (
    <>
      {metaQuestions(state).map(({ id, text }) => (
        <Markdown key={id} text={text} class="asked" />
      ))}
      <JsonTree value={shown} open={1} />
    </>
  );
}

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

interface EventAnswerProps {
  readonly events: readonly PossibleEvent[];
  readonly isDisabled: boolean;
  /** The faults of the event that was sent last. */
  readonly faults?: readonly AnswerFault[];
  /**
   * `clicks`: the number of clicks, from `detail` of the click: 2 for the second click of a double click, 0 if the
   * button was pressed with the keyboard.
   */
  readonly onSend: (event: JsonRecord, clicks: number) => void;
}

/**
 * Buttons for the events that a machine accepts. If an event's schema has fields, the button opens a form for them.
 * Other buttons send the event at once, with data from fields for names and values. For a wildcard such as `order.*`,
 * there is a field for the event's type.
 */
export function EventAnswer({ events, isDisabled, faults = [], onSend }: EventAnswerProps) {
  const [other, setOther] = useState("");
  const [data, setData] = useState<unknown>(undefined);
  const [isWrong, setWrong] = useState(false);
  const forms = new Map(
    events.flatMap((event) => {
      const schema = dataSchemaOf(event);
      return schema === null ? [] : [[event.type, schema] as const];
    }),
  );
  const [only] = events.length === 1 ? forms.keys() : [];
  const [opened, setOpened] = useState<string | null>(only ?? null);
  /**
   * The types of the events whose forms were opened so far. These forms stay rendered, so that they keep their input.
   */
  const [used, setUsed] = useState<ReadonlySet<string>>(() => new Set(opened === null ? [] : [opened]));
  /** The event whose button opened its form. A form that is open from the start takes no focus. */
  const [chosen, setChosen] = useState<string | null>(null);
  const isClosed = isDisabled || isWrong;
  /** The type of the event whose form was sent last; null if the event was sent without a form. */
  const [sentForm, setSentForm] = useState<string | null>(null);
  const send = (type: string, clicks: number) => {
    setSentForm(null);
    onSend({ ...(data as JsonRecord | undefined), type }, clicks);
  };
  const types = events.map(({ type }) => type);
  const named = types.filter((type) => !type.endsWith("*"));
  const open = types.filter((type) => type.endsWith("*"));
  if (events.length === 0) return <p class="hint">Waiting for a timer; no event is accepted.</p>;
  return (
    <>
      {forms.size < events.length && (
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
      )}
      <div class="ways">
        {named.length > 0 && (
          <div class="ways" role="group" aria-label="Event">
            {named.map((event) =>
              forms.has(event) ? (
                <button
                  key={event}
                  type="button"
                  disabled={isDisabled}
                  aria-expanded={opened === event}
                  onClick={() => {
                    const next = opened === event ? null : event;
                    setOpened(next);
                    setChosen(next);
                    setUsed((before) => new Set([...before, event]));
                  }}
                >
                  {event}
                </button>
              ) : (
                <button
                  key={event}
                  type="button"
                  disabled={isClosed}
                  onClick={({ detail }) => send(event, detail)}
                >
                  {event}
                </button>
              ),
            )}
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
      {sentForm === null && faults.length > 0 && <FaultLines faults={faults} />}
      {[...forms]
        .filter(([type]) => used.has(type))
        .map(([type, schema]) => (
          <div key={type} hidden={type !== opened}>
            <EventForm
              type={type}
              schema={schema}
              isDisabled={isDisabled}
              takesFocus={type === chosen}
              faults={type === sentForm ? faults : []}
              onSend={(given) => {
                setSentForm(type);
                onSend({ ...given, type }, 0);
              }}
            />
          </div>
        ))}
    </>
  );
}

interface EventFormProps {
  readonly type: string;
  /** The schema of the event's data, with at least one property. */
  readonly schema: JsonSchema;
  readonly isDisabled: boolean;
  /** When this becomes true, the first field gets the focus. */
  readonly takesFocus: boolean;
  readonly faults: readonly AnswerFault[];
  readonly onSend: (data: JsonRecord) => void;
}

/** The form for the data of one event, generated from the schema that the machine declares for it. */
function EventForm({ type, schema, isDisabled, takesFocus, faults, onSend }: EventFormProps) {
  const [data, setData] = useState<JsonRecord>({});
  const refused = useMemo(
    () => new Map(faults.map((fault) => [fieldPathOf(schema, fault.at) ?? "", fault] as const)),
    [schema, faults],
  );
  const validation = useFormValidation(schema, data, refused);
  const others = faults.filter(({ at }) => fieldPathOf(schema, at) === null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (takesFocus) form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
  }, [takesFocus]);
  return (
    <form
      ref={form}
      noValidate
      aria-label={`Data of ${type}`}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
        event.preventDefault();
        event.currentTarget.requestSubmit();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        if (isDisabled) return;
        if (validation.validate()) onSend(data);
        // Waits for the next rendering, which marks the wrong fields.
        else
          requestAnimationFrame(() =>
            form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(),
          );
      }}
    >
      {schema.description !== undefined && <p class="hint">{schema.description}</p>}
      <SchemaFields schema={schema} value={data} validation={validation} onChange={setData} />
      {others.length > 0 && <FaultLines faults={others} />}
      <div class="bar end">
        <button class="primary" disabled={isDisabled}>
          Send {type}
        </button>
      </div>
    </form>
  );
}
