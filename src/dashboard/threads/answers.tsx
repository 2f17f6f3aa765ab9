import { useId, useState } from "preact/hooks";
import { type Interrupt, isJson } from "../api/records.ts";
import { JsonField } from "../parts/form.tsx";
import { JsonTree } from "../parts/json.tsx";
import { Pairs } from "./pairs.tsx";

interface AnswersProps {
  readonly interrupts: readonly Interrupt[];
  readonly onAnswer: (resume: unknown) => Promise<boolean>;
}

/** What the graph asks, each with a place for the answer. */
export function Answers({ interrupts, onAnswer }: AnswersProps) {
  const [answers, setAnswers] = useState<ReadonlyMap<string, unknown>>(new Map());
  const [isSending, setSending] = useState(false);
  const isMany = interrupts.length > 1;
  const isReady = interrupts.every(({ id }) => answers.get(id) !== undefined);
  const send = async (given: ReadonlyMap<string, unknown>) => {
    setSending(true);
    await onAnswer(isMany ? Object.fromEntries(given) : given.get(interrupts[0]?.id ?? ""));
    setSending(false);
  };
  return (
    <form
      aria-busy={isSending}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !isSending) void send(answers);
      }}
    >
      {interrupts.map((interrupt) => (
        <Question
          key={interrupt.id}
          interrupt={interrupt}
          onChange={(answer) => setAnswers((before) => new Map(before).set(interrupt.id, answer))}
        />
      ))}
      <div class="bar end">
        <button class="primary" disabled={!isReady || isSending}>
          {isMany ? `Send ${interrupts.length} answers` : "Send answer"}
        </button>
      </div>
    </form>
  );
}

const WAYS = [
  ["fields", "Fields"],
  ["text", "Text"],
  ["yes", "Yes / no"],
  ["json", "JSON"],
] as const;
type Way = (typeof WAYS)[number][0];

function Question({ interrupt, onChange }: { interrupt: Interrupt; onChange: (answer: unknown) => void }) {
  const id = useId();
  const [way, setWay] = useState<Way>("json");
  const from = interrupt.ns?.[0]?.split(":")[0];
  const choose = (next: Way) => {
    setWay(next);
    onChange(undefined);
  };
  return (
    <fieldset class="question">
      <legend>
        <span class="dot interrupted" aria-hidden="true" /> {from === undefined ? "It asks" : `${from} asks`}
      </legend>
      <Asked value={interrupt.value} />
      <div class="ways" role="group" aria-label="How to answer">
        {WAYS.map(([name, title]) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={way === name}
            onClick={() => choose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      {way === "fields" && <Pairs onChange={onChange} />}
      {way === "text" && (
        <textarea
          id={id}
          rows={2}
          aria-label="Answer"
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.value)
          }
        />
      )}
      {way === "yes" && (
        <div class="bar" role="radiogroup" aria-label="Answer">
          {[true, false].map((one) => (
            <label key={String(one)}>
              <input type="radio" name={id} onChange={() => onChange(one)} />{" "}
              {one ? "yes (true)" : "no (false)"}
            </label>
          ))}
        </div>
      )}
      {way === "json" && (
        <JsonField
          id={id}
          label="Answer, as JSON"
          value={undefined}
          rows={2}
          placeholder={'{"ok": true}'}
          isStrict
          onChange={onChange}
        />
      )}
    </fieldset>
  );
}

/** A question in words first, then all that came with it. */
function Asked({ value }: { readonly value: unknown }) {
  if (typeof value === "string") return <p class="asked">{value}</p>;
  const words = isJson(value)
    ? ["question", "message", "prompt", "description"].find((name) => typeof value[name] === "string")
    : undefined;
  if (!isJson(value) || words === undefined) return <JsonTree value={value} open={3} />;
  const { [words]: text, ...rest } = value;
  return (
    <>
      <p class="asked">{String(text)}</p>
      {Object.keys(rest).length > 0 && <JsonTree value={rest} open={2} />}
    </>
  );
}
