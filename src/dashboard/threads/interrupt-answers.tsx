import { useEffect, useRef, useState } from "preact/hooks";
import { type InterruptQuestion, isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { REPLACED_BY_CLICK } from "../app/ignore-second-clicks.ts";
import { validateFormValue } from "../components/form-schema.ts";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { Markdown } from "../components/markdown.tsx";
import type { AnswerRefusalReason, AnswerSubmission } from "../live/answer-requests.ts";
import { findQuestionTextKey } from "../components/one-line-text.ts";
import { awaitedEventTypes } from "./event-answer.tsx";
import { MachineQuestion } from "./machine-question.tsx";
import { type ActionReview, parseActionReview } from "./proposed-actions.ts";
import { ActionReviewForm } from "./action-review-form.tsx";
import { type AnswerChoice, suggestAnswerMethod } from "./suggested-answer-method.ts";
import { UnsentJsonNote } from "./unsent-json-note.tsx";
import {
  ChoiceButtons,
  schemaChoicesOf,
  KeyValueAnswer,
  FormAnswer,
  JsonAnswer,
  TextAnswer,
  type AnswerMethod,
  ANSWER_METHOD_LABELS,
  YesNoAnswer,
} from "./answer-fields.tsx";

interface AnswersProps {
  readonly questions: readonly InterruptQuestion[];
  /** The name of the graph that asks; undefined if it is not known. */
  readonly graph: string | undefined;
  /** Whether it is too late for an answer. */
  readonly isClosed?: boolean;
  /** Why the latest answer was refused; null if it was accepted, or if there was none. */
  readonly refusal: AnswerRefusalReason | null;
  /** Called with the answers, by the ids of their questions. If it resolves with `failed`, they count as unsent. */
  readonly onAnswer: (answers: JsonRecord) => Promise<AnswerSubmission>;
}

/** The pending questions of a thread, each with a field for its answer. All answers are sent together. */
export function InterruptAnswers({
  questions,
  graph,
  isClosed = false,
  refusal: lastRefusal,
  onAnswer,
}: AnswersProps) {
  const [refusal, setRefusal] = useState(lastRefusal);
  const [answers, setAnswers] = useState<ReadonlyMap<string, unknown>>(() => initial(questions));
  const [isSending, setSending] = useState(false);
  /** Whether the user has entered something that has not been sent. */
  const [isEdited, setEdited] = useState(false);
  // A run may refuse an answer long after it was sent. The form still contains the answer, which then counts as unsent.
  useEffect(() => {
    if (lastRefusal === null) return;
    setRefusal(lastRefusal);
    setEdited(true);
  }, [lastRefusal]);
  const isMany = questions.length > 1;
  const isReady = !isClosed && questions.every(({ id }) => answers.get(id) !== undefined);
  const send = async (given: JsonRecord) => {
    setSending(true);
    setRefusal(null);
    const outcome = await onAnswer(given);
    if (outcome === "accepted") setEdited(false);
    else if (outcome !== "failed") setRefusal(outcome);
    setSending(false);
  };
  const failure = refusal !== null && (
    <p class="failure" role="alert">
      {refusal.text}
    </p>
  );
  const leaving = (
    <LeaveConfirmation
      isEdited={isEdited && !isClosed && !isSending}
      title="Leave without sending?"
      text="Your answer has not been sent and will be lost."
    />
  );
  // A machine asks only one question at a time, so several questions are never those of a machine.
  const [first] = questions;
  const events = first === undefined || isMany ? null : awaitedEventTypes(first);
  if (first !== undefined && events !== null)
    return (
      <div
        {...REPLACED_BY_CLICK}
        aria-busy={isSending}
        onInput={() => {
          setEdited(true);
          // The user may have corrected the refused field, so the refusal is no longer shown.
          setRefusal((before) => (before === null || before.faults.length > 0 ? null : before));
        }}
      >
        <MachineQuestion
          question={first}
          events={events}
          graph={graph}
          isDisabled={isClosed || isSending}
          faults={refusal?.faults ?? []}
          onSend={(answer) => void send({ [first.id]: answer })}
        />
        {isSending && (
          <p class="hint" role="status">
            Sending…
          </p>
        )}
        {refusal?.faults.length === 0 && failure}
        {leaving}
      </div>
    );
  return (
    <form
      {...REPLACED_BY_CLICK}
      aria-busy={isSending}
      onInput={() => setEdited(true)}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !isSending) void send(Object.fromEntries(answers));
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
        // The field for a text has handled this key press, and sends the form itself.
        if (event.defaultPrevented) return;
        event.preventDefault();
        event.currentTarget.requestSubmit();
      }}
    >
      {questions.map((question) => (
        <Asking
          key={question.id}
          question={question}
          onChange={(answer) => setAnswers((before) => new Map(before).set(question.id, answer))}
        />
      ))}
      {failure}
      <div class="bar end">
        <button class="primary" disabled={!isReady || isSending}>
          {isMany ? `Send ${questions.length} answers` : "Send answer"}
        </button>
      </div>
      {leaving}
    </form>
  );
}

/** Returns the initial answers: an empty object for each question whose form requires no value. */
function initial(questions: readonly InterruptQuestion[]): ReadonlyMap<string, unknown> {
  const whole = questions.filter(({ response_schema: schema }) => {
    const form = formOf(schema);
    return form?.properties !== undefined && validateFormValue(form, {}).length === 0;
  });
  return new Map(whole.map(({ id }) => [id, {}]));
}

/** Returns the schema if a form can be generated from it; otherwise null. */
const formOf = (schema: JsonSchema | null | undefined): JsonSchema | null =>
  schema === null ||
  schema === undefined ||
  (schema.properties === undefined && schema.type === undefined && schema.enum === undefined)
    ? null
    : schema;

/**
 * The input method that the user most recently chose for questions without a schema, by the suggested method. The next
 * question with the same suggestion begins with this method, because the questions in an inbox are often alike.
 */
const lastChosenMethods = new Map<AnswerMethod, AnswerMethod>();

function Asking({
  question,
  onChange,
}: {
  question: InterruptQuestion;
  onChange: (answer: unknown) => void;
}) {
  const schema = formOf(question.response_schema);
  const proposal = parseActionReview(question.value);
  const suggested = schema === null && proposal === null ? suggestAnswerMethod(question.value) : null;
  const choices = suggested === null ? schemaChoicesOf(schema) : suggested.choices;
  const ways: readonly AnswerMethod[] =
    suggested !== null
      ? [...(choices === null ? [] : ["choice" as const]), "fields", "text", "yes", "json"]
      : proposal !== null
        ? ["action", "json"]
        : [choices === null ? "form" : "choice", "json"];
  const [way, setWay] = useState<AnswerMethod>(() =>
    suggested === null ? (ways[0] ?? "json") : (lastChosenMethods.get(suggested.method) ?? suggested.method),
  );
  /** The methods that the user has chosen so far. Their fields stay rendered, so that they keep their input. */
  const [used, setUsed] = useState<ReadonlySet<AnswerMethod>>(() => new Set([way]));
  /** The answers that were entered, by their methods. */
  const answers = useRef(new Map<AnswerMethod, unknown>());
  const [entered, setEntered] = useState<unknown>(undefined);
  const [isJsonWrong, setJsonWrong] = useState(false);
  const from = question.ns?.at(-1)?.split(":")[0];
  const box = useRef<HTMLFieldSetElement>(null);
  const choose = (next: AnswerMethod) => {
    setWay(next);
    setUsed((before) => new Set([...before, next]));
    // The fields of the chosen method are rendered only after this function, and then get the focus.
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(":scope > div:not([hidden]) :is(textarea, input)")?.focus(),
    );
    if (suggested !== null) lastChosenMethods.set(suggested.method, next);
    onChange(answers.current.get(next));
  };
  const changeOf = (method: AnswerMethod) => (answer: unknown) => {
    answers.current.set(method, answer);
    if (method === way) onChange(answer);
  };
  return (
    <fieldset ref={box} class="question">
      <legend>
        <span class="dot interrupted" aria-hidden="true" />{" "}
        {from === undefined ? "Question" : `Question from ${from}`}
      </legend>
      {way !== "action" && <Asked value={question.value} />}
      <div class="ways" role="group" aria-label="How to answer">
        {ways.map((name) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={way === name}
            onClick={() => choose(name)}
          >
            {ANSWER_METHOD_LABELS[name]}
          </button>
        ))}
      </div>
      {ways
        .filter((method) => used.has(method))
        .map((method) => (
          <div key={method} class="method" hidden={method !== way}>
            <AnswerInput
              method={method}
              {...{ schema, proposal, choices, entered }}
              onEnter={setEntered}
              onChange={changeOf(method)}
              onWrongJson={(why) => setJsonWrong(why !== null)}
            />
          </div>
        ))}
      {way !== "json" && isJsonWrong && (
        <UnsentJsonNote
          fault="is not valid"
          sent={`what you enter under “${ANSWER_METHOD_LABELS[way]}” is`}
          onBack={() => choose("json")}
          onDiscard={() => {
            setJsonWrong(false);
            setUsed((before) => new Set([...before].filter((method) => method !== "json")));
          }}
        />
      )}
    </fieldset>
  );
}

interface InputProps {
  readonly method: AnswerMethod;
  readonly schema: JsonSchema | null;
  readonly proposal: ActionReview | null;
  readonly choices: readonly AnswerChoice[] | null;
  /** The value of the form that is generated from the schema. */
  readonly entered: unknown;
  readonly onEnter: (value: unknown) => void;
  readonly onChange: (answer: unknown) => void;
  /** Called after each change of the text typed as JSON with the reason why it is not JSON; null if it is. */
  readonly onWrongJson: (why: string | null) => void;
}

function AnswerInput({
  method,
  schema,
  proposal,
  choices,
  entered,
  onEnter,
  onChange,
  onWrongJson,
}: InputProps) {
  switch (method) {
    case "action":
      return proposal === null ? null : <ActionReviewForm proposal={proposal} onChange={onChange} />;
    case "choice":
      return choices === null ? null : <ChoiceButtons choices={choices} onChange={onChange} />;
    case "form":
      return schema === null ? null : (
        <FormAnswer schema={schema} value={entered} onEnter={onEnter} onChange={onChange} />
      );
    case "fields":
      return <KeyValueAnswer onChange={onChange} />;
    case "text":
      return <TextAnswer onChange={onChange} />;
    case "yes":
      return <YesNoAnswer onChange={onChange} />;
    case "json":
      return <JsonAnswer onChange={onChange} onWrong={onWrongJson} />;
    case "event":
      return null;
  }
}

/** Shows the text of a question, and below it the other members of its value. */
function Asked({ value }: { readonly value: unknown }) {
  if (typeof value === "string") return <Markdown text={value} class="asked" />;
  const words = findQuestionTextKey(value);
  if (!isJsonRecord(value) || words === undefined) return <JsonTree value={value} open={3} />;
  const { [words]: text, ...rest } = value;
  return (
    <>
      <Markdown text={String(text)} class="asked" />
      {Object.keys(rest).length > 0 && <JsonTree value={rest} open={2} />}
    </>
  );
}
