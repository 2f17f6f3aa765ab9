import { useId, useMemo, useState } from "preact/hooks";
import { isJsonRecord, type JsonRecord } from "../api/records.ts";
import { useFormValidation, useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { schemaOfValues } from "../components/form-schema.ts";
import { JsonField } from "../components/json-field.tsx";
import { SchemaFields } from "../components/schema-form.tsx";
import { toOneLine } from "../components/one-line-text.ts";
import { messageTypeOf, toChatMessage } from "../live/chat-messages.ts";
import {
  toolCallsOf,
  hasToolCallBlocks,
  messageFault,
  type MessageList,
  newToolCall,
  MESSAGE_ROLES,
  withToolCalls,
  withRole,
} from "./message-list-update.ts";

interface Row {
  readonly key: number;
  /** The message as stored in the thread; null if the user has added it. */
  readonly stored: JsonRecord | null;
  readonly message: JsonRecord;
}

interface ListProps {
  readonly name: string;
  /** The messages as stored in the thread. */
  readonly messages: MessageList;
  /** The messages with which the form begins, if they were edited before; default: the stored ones. */
  readonly initial?: MessageList | undefined;
  readonly onChange: (messages: MessageList) => void;
}

/** The number of messages at the end of the list that are shown before the user asks for earlier ones. */
const MESSAGES_PER_STEP = 50;

/** A form for a list of messages, in which each message can be opened, edited, moved and removed. */
export function MessageListForm({ name, messages, initial = messages, onChange }: ListProps) {
  const id = useId();
  const [rows, setRows] = useState(() => rowsOf(messages, initial));
  const [most, setMost] = useState(MESSAGES_PER_STEP);
  const set = (next: readonly Row[]) => {
    setRows(next);
    onChange(next.map(({ message }) => message));
  };
  const hidden = Math.max(0, rows.length - most);
  const list = rows.map(({ message }) => message);
  return (
    <section class="field" aria-labelledby={id}>
      <h4 id={id}>{name}</h4>
      {hidden > 0 && (
        <button type="button" class="quiet" onClick={() => setMost(most + MESSAGES_PER_STEP)}>
          {hidden} earlier messages…
        </button>
      )}
      <ol class="message-edits">
        {rows.slice(hidden).map((row, i) => (
          <li key={row.key}>
            <MessageForm
              row={row}
              index={hidden + i}
              list={list}
              onChange={(message) => set(rows.map((one) => (one === row ? { ...row, message } : one)))}
              onMove={(by) => set(moved(rows, hidden + i, by))}
              onRemove={() => set(rows.filter((one) => one !== row))}
            />
          </li>
        ))}
      </ol>
      <div>
        <button
          type="button"
          onClick={() => {
            const key = Math.max(-1, ...rows.map((row) => row.key)) + 1;
            set([...rows, { key, stored: null, message: { type: "human", content: "" } }]);
          }}
        >
          Add message
        </button>
      </div>
    </section>
  );
}

/**
 * Returns the initial rows of the form. `stored` of a row: the stored message that is the same object, or that has the
 * same id.
 */
function rowsOf(messages: MessageList, initial: MessageList): readonly Row[] {
  const unchanged = new Set(messages);
  const byId = new Map(messages.map((message) => [message["id"], message]));
  return initial.map((message, key) => {
    const { id } = message;
    const edited = id === undefined ? undefined : byId.get(id);
    return { key, stored: unchanged.has(message) ? message : (edited ?? null), message };
  });
}

function moved<T>(list: readonly T[], index: number, by: number): readonly T[] {
  const rest = list.toSpliced(index, 1);
  return rest.toSpliced(index + by, 0, list[index] as T);
}

interface FormProps {
  readonly row: Row;
  readonly index: number;
  readonly list: MessageList;
  readonly onChange: (message: JsonRecord) => void;
  readonly onMove: (by: number) => void;
  readonly onRemove: () => void;
}

function MessageForm({ row, index, list, onChange, onMove, onRemove }: FormProps) {
  const { stored, message } = row;
  const id = useId();
  const [isOpen, setOpen] = useState(stored === null);
  /**
   * Whether the user has opened the message before. Its fields then stay rendered while they are hidden, so that they
   * keep text that is not valid yet.
   */
  const [wasOpen, setWasOpen] = useState(isOpen);
  const role = messageTypeOf(message);
  const isChanged = message !== stored;
  const fault = isChanged ? messageFault(message) : null;
  const what = `message ${index + 1}`;
  const move = (by: number) => {
    const isEnd = list[index + by] === undefined;
    return {
      // Not `disabled`, because the button would then lose the keyboard focus when the message reaches the end of the
      // list.
      "aria-disabled": isEnd,
      onClick({ currentTarget: button }: { readonly currentTarget: HTMLElement }) {
        if (isEnd) return;
        onMove(by);
        // A browser removes the focus from an element that is moved in the DOM.
        requestAnimationFrame(() => button.focus());
      },
    };
  };
  return (
    <fieldset aria-label={`Message ${index + 1}`}>
      <div class="bar">
        <button
          type="button"
          class="quiet preview"
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
            setWasOpen(true);
          }}
        >
          {isOpen ? "▾" : "▸"} <strong>{role}</strong> {previewOf(message)}
        </button>
        {isChanged && <span class="count">{stored === null ? "new" : "changed"}</span>}
        <button type="button" class="quiet" aria-label={`Move ${what} up`} {...move(-1)}>
          ↑
        </button>
        <button type="button" class="quiet" aria-label={`Move ${what} down`} {...move(1)}>
          ↓
        </button>
        <button type="button" class="quiet" aria-label={`Remove ${what}`} onClick={onRemove}>
          ✕
        </button>
      </div>
      {fault !== null && (
        <p class="hint bad" role="alert">
          {fault}
        </p>
      )}
      {wasOpen && (
        <div class="fields" hidden={!isOpen}>
          <label class="inline">
            Role
            <select
              value={role}
              onChange={({ currentTarget }) => onChange(withRole(message, currentTarget.value, stored))}
            >
              {[...new Set([...MESSAGE_ROLES, role])].map((one) => (
                <option key={one} selected={one === role}>
                  {one}
                </option>
              ))}
            </select>
          </label>
          <Content id={`${id}-content`} message={message} onChange={onChange} />
          {role === "tool" && <ToolFields id={id} message={message} list={list} onChange={onChange} />}
          {role === "ai" && <Calls message={message} list={list} onChange={onChange} />}
        </div>
      )}
    </fieldset>
  );
}

function previewOf(message: JsonRecord): string {
  const { text, calls } = toChatMessage(message);
  return toOneLine([text, ...calls.map(({ name }) => `→ ${name}`)].join(" "));
}

interface PartProps {
  readonly message: JsonRecord;
  readonly onChange: (message: JsonRecord) => void;
}

function Content({ id, message, onChange }: PartProps & { readonly id: string }) {
  const { content } = message;
  // The editor is chosen only once, so that it does not change while the user types: text if the content was a string
  // initially, otherwise JSON.
  const [isText] = useState(typeof content === "string");
  return (
    <div class="field">
      <label for={id}>{isText ? "Text" : "Content, as JSON"}</label>
      {isText ? (
        <textarea
          id={id}
          rows={Math.min(12, String(content).split("\n").length)}
          value={String(content)}
          onInput={({ currentTarget }) => onChange({ ...message, content: currentTarget.value })}
        />
      ) : (
        <JsonField
          id={id}
          value={content}
          isStrict
          onChange={(value) => onChange({ ...message, content: value })}
        />
      )}
    </div>
  );
}

type ListedProps = PartProps & { readonly list: MessageList };

/** The fields of a tool message: the id of the tool call to which it belongs, and its status. */
function ToolFields({ id, message, list, onChange }: ListedProps & { readonly id: string }) {
  const { tool_call_id: call, status } = message;
  const isFailed = status === "error";
  return (
    <>
      <div class="field">
        <label for={`${id}-call`}>Tool call ID</label>
        <input
          id={`${id}-call`}
          list={`${id}-calls`}
          value={typeof call === "string" ? call : ""}
          onInput={({ currentTarget }) => onChange({ ...message, tool_call_id: currentTarget.value })}
        />
        <datalist id={`${id}-calls`}>
          {list.flatMap(toolCallsOf).map((one, i) => (
            <option key={i} value={String(one["id"])}>
              {String(one["name"])}
            </option>
          ))}
        </datalist>
      </div>
      <label class="inline">
        <input
          type="checkbox"
          checked={isFailed}
          onChange={() => onChange({ ...message, status: isFailed ? "success" : "error" })}
        />
        The tool failed
      </label>
    </>
  );
}

/** The fields of a message's tool calls. */
function Calls({ message, list, onChange }: ListedProps) {
  const calls = toolCallsOf(message);
  const set = (next: readonly JsonRecord[]) => onChange(withToolCalls(message, next));
  // The Preact keys of the tool calls. Their ids do not serve as keys, because the user edits them and they may be
  // missing.
  const [keys, setKeys] = useState(() => calls.map((_, key) => key));
  return (
    <>
      {calls.map((call, i) => (
        <CallForm
          key={keys[i]}
          call={call}
          index={i}
          onChange={(changed) => set(calls.with(i, changed))}
          onRemove={() => {
            set(calls.toSpliced(i, 1));
            setKeys(keys.toSpliced(i, 1));
          }}
        />
      ))}
      {hasToolCallBlocks(message) && (
        <p class="hint">The content also has blocks with tool calls. Edit the content blocks too.</p>
      )}
      <div>
        <button
          type="button"
          onClick={() => {
            set([...calls, newToolCall(list)]);
            setKeys([...keys, Math.max(-1, ...keys) + 1]);
          }}
        >
          Add tool call
        </button>
      </div>
    </>
  );
}

interface CallProps {
  readonly call: JsonRecord;
  readonly index: number;
  readonly onChange: (call: JsonRecord) => void;
  readonly onRemove: () => void;
}

function CallForm({ call, index, onChange, onRemove }: CallProps) {
  const id = useId();
  const [args, setArgs] = useState(call["args"]);
  const [isJson, setJson] = useState(!isJsonRecord(args) || Object.keys(args).length === 0);
  const schema = useMemo(() => schemaOfValues(isJsonRecord(args) ? args : {}), [isJson]);
  const validation = useFormValidation(isJson ? null : schema, args);
  const read = validation.errors.size > 0 ? undefined : args;
  useReportBeforeNextEvent(() => {
    if (read !== call["args"]) onChange({ ...call, args: read });
  }, [read]);
  const text = (name: "name" | "id", label: string) => (
    <div class="field">
      <label for={`${id}-${name}`}>{label}</label>
      <input
        id={`${id}-${name}`}
        value={typeof call[name] === "string" ? call[name] : ""}
        onInput={({ currentTarget }) => onChange({ ...call, [name]: currentTarget.value })}
      />
    </div>
  );
  return (
    <fieldset class="call" aria-label={`Tool call ${index + 1}`}>
      <div class="bar">
        {text("name", "Tool name")}
        {text("id", "ID")}
        <button type="button" class="quiet" aria-label={`Remove tool call ${index + 1}`} onClick={onRemove}>
          ✕
        </button>
      </div>
      {isJson ? (
        <div class="field">
          <label for={`${id}-args`}>Arguments, as JSON</label>
          <JsonField id={`${id}-args`} value={args} isStrict onChange={setArgs} />
        </div>
      ) : (
        <SchemaFields
          schema={schema}
          value={isJsonRecord(args) ? args : {}}
          validation={validation}
          onChange={setArgs}
        />
      )}
      <div>
        <button
          type="button"
          class="quiet"
          aria-pressed={isJson}
          disabled={!isJsonRecord(args)}
          onClick={() => {
            validation.clear();
            setJson(!isJson);
          }}
        >
          Arguments as JSON
        </button>
      </div>
    </fieldset>
  );
}
