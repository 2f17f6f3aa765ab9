import { useId, useState } from "preact/hooks";
import { getSchemas } from "../api/client.ts";
import { type Assistant, isJson, type Json, type Schema } from "../api/records.ts";
import { nameOf } from "../parts/assistants.ts";
import { Fields, JsonField } from "../parts/form.tsx";
import { useResource } from "../parts/resource.ts";
import { CopyCode } from "./code.tsx";
import { optionsOf, RunOptions, type RunSettings } from "./run-options.tsx";

interface RunFormProps {
  readonly assistants: readonly Assistant[];
  /** An assistant's id, or a graph's name. */
  readonly initial: string | undefined;
  /** Null: the thread is made with the run. */
  readonly thread: string | null;
  readonly isBusy: boolean;
  readonly submit: string;
  /** False: it was refused, and what was entered stays. */
  readonly onRun: (request: Json) => Promise<boolean>;
  readonly onChoose?: (assistant: string) => void;
}

/** What a run is started with: a message where the graph talks, a form made of its input schema, or JSON. */
export function RunForm({ assistants, initial, thread, isBusy, submit, onRun, onChoose }: RunFormProps) {
  const id = useId();
  const [chosen, setChosen] = useState<string | undefined>();
  const [input, setInput] = useState<Json>({});
  const [text, setText] = useState("");
  const [isJsonWanted, setJsonWanted] = useState(false);
  const [settings, setSettings] = useState<RunSettings>({ strategy: "enqueue" });
  const [round, setRound] = useState(0);
  const [isSending, setSending] = useState(false);
  const fallback = assistants.find(({ assistant_id, graph_id }) =>
    [assistant_id, graph_id].includes(initial ?? ""),
  );
  const assistant = chosen ?? fallback?.assistant_id ?? initial ?? assistants[0]?.assistant_id;
  const schemas = useResource(
    async () => (assistant === undefined ? undefined : getSchemas(assistant)),
    [assistant],
  );
  const schema = schemas.value?.input_schema ?? null;
  const talk = talkOf(schema);
  const rest = schema === null || talk === null ? schema : without(schema, talk);
  const hasFields = Object.keys(rest?.properties ?? {}).length > 0;
  const given = isJsonWanted || talk === null || text.trim() === "" ? input : withMessage(input, talk, text);
  const request = { assistant_id: assistant ?? "", input: given, ...optionsOf(settings, isBusy) };
  const run = async () => {
    if (isSending) return;
    setSending(true);
    if (await onRun(request)) {
      setText("");
      setInput({});
      setRound(round + 1);
    }
    setSending(false);
  };
  return (
    <form
      class="run-form"
      aria-busy={isSending}
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      {isJsonWanted || schema === null || schema.properties === undefined ? (
        <JsonField
          key={`json ${round}`}
          id={`${id}-json`}
          label="Input, as JSON"
          value={Object.keys(input).length === 0 ? undefined : input}
          rows={3}
          placeholder={'{"messages": [{"role": "user", "content": "hello"}]}'}
          isStrict
          onChange={(value) => setInput(isJson(value) ? value : {})}
        />
      ) : (
        <>
          {talk !== null && (
            <textarea
              id={`${id}-text`}
              class="message"
              aria-label="Message"
              placeholder="Say something… (Enter sends, Shift+Enter begins a new line)"
              rows={Math.min(8, Math.max(1, text.split("\n").length))}
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
                event.preventDefault();
                if (text.trim() !== "") void run();
              }}
            />
          )}
          {hasFields && rest !== null && (
            <Fields key={`${assistant} ${round}`} schema={rest} value={input} onChange={setInput} />
          )}
        </>
      )}
      <div class="bar foot">
        <label class="inline">
          <span class="dim">Assistant</span>
          <select
            aria-label="Assistant"
            value={assistant}
            onChange={({ currentTarget }) => {
              setChosen(currentTarget.value);
              setInput({});
              onChoose?.(currentTarget.value);
            }}
          >
            {assistants.map((one) => (
              <option
                key={one.assistant_id}
                value={one.assistant_id}
                selected={one.assistant_id === assistant}
              >
                {nameOf(one)}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="quiet"
          aria-pressed={isJsonWanted}
          onClick={() => {
            if (!isJsonWanted && talk !== null && text.trim() !== "") setInput(given);
            setJsonWanted(!isJsonWanted);
          }}
        >
          JSON
        </button>
        <RunOptions
          settings={settings}
          isBusy={isBusy}
          context={schemas.value?.context_schema ?? null}
          onChange={setSettings}
        />
        <CopyCode thread={thread} request={request} />
        <span class="space" />
        <button class="primary" disabled={isSending || assistant === undefined}>
          {submit}
        </button>
      </div>
      {schemas.error !== null && <p class="hint bad">{schemas.error}</p>}
    </form>
  );
}

/** The property of the input that takes messages. */
function talkOf(schema: Schema | null): string | null {
  const entries = Object.entries(schema?.properties ?? {});
  return entries.find(([name, one]) => one.langgraph_type === "messages" || name === "messages")?.[0] ?? null;
}

function without(schema: Schema, name: string): Schema {
  const { [name]: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}

const withMessage = (input: Json, key: string, text: string): Json => ({
  ...input,
  [key]: [{ role: "user", content: text }],
});
