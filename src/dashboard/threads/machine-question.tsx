import { useRef, useState } from "preact/hooks";
import { type InterruptQuestion, isJsonRecord } from "../api/records.ts";
import type { AnswerFault } from "../live/answer-requests.ts";
import { ANSWER_METHOD_LABELS, JsonAnswer } from "./answer-fields.tsx";
import { UnsentJsonNote } from "./unsent-json-note.tsx";
import { EventAnswer, possibleEventsOf, stateText, WaitingMachineState } from "./event-answer.tsx";

interface MachineQuestionProps {
  readonly question: InterruptQuestion;
  /** The events that the machine waits for; empty if it waits for a timer. */
  readonly events: readonly string[];
  /** The name of the machine's graph; undefined if it is not known. */
  readonly graph: string | undefined;
  /** Whether no answer can be sent: it is too late, or another answer is being sent. */
  readonly isDisabled: boolean;
  /** The faults of the latest answer. */
  readonly faults: readonly AnswerFault[];
  readonly onSend: (answer: unknown) => void;
}

/** The question of a machine that waits for an event or a timer, with a button for each event. */
export function MachineQuestion({
  question,
  events,
  graph,
  isDisabled,
  faults,
  onSend,
}: MachineQuestionProps) {
  const [way, setWay] = useState<"event" | "json">("event");
  const [entered, setEntered] = useState<unknown>(undefined);
  const [isJsonWrong, setJsonWrong] = useState(false);
  /** Rises when the text typed as JSON is discarded, so that its field is created anew. */
  const [round, setRound] = useState(0);
  const json = useRef<HTMLDivElement>(null);
  /** The input method of the latest answer. The faults are shown beside the fields of this method. */
  const [sent, setSent] = useState(way);
  const send = (answer: unknown) => {
    setSent(way);
    onSend(answer);
  };
  const state = isJsonRecord(question.value) ? question.value["state"] : undefined;
  const awaited = events.length === 0 ? "a timer" : "an event";
  return (
    <fieldset class="question">
      <legend>
        <span class="dot interrupted" aria-hidden="true" /> {graph ?? "The machine"} waits for {awaited} in{" "}
        {stateText(state)}
      </legend>
      <WaitingMachineState value={question.value} />
      <div class="ways" role="group" aria-label="How to answer">
        {(["event", "json"] as const).map((name) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={way === name}
            onClick={() => setWay(name)}
          >
            {ANSWER_METHOD_LABELS[name]}
          </button>
        ))}
      </div>
      {/* Both input methods stay rendered, so that they keep their input. */}
      <div class="method" hidden={way !== "event"}>
        <EventAnswer
          events={possibleEventsOf(events, question)}
          isDisabled={isDisabled}
          faults={sent === "event" ? faults : []}
          onSend={(event, clicks) => {
            // The second click of a double click could hit a button of the machine's next question, so it is ignored.
            if (clicks < 2) send(event);
          }}
        />
      </div>
      {way !== "json" && isJsonWrong && (
        <UnsentJsonNote
          fault="is not valid"
          sent="the event that you choose is"
          onBack={() => {
            setWay("json");
            requestAnimationFrame(() => json.current?.querySelector("textarea")?.focus());
          }}
          onDiscard={() => {
            setJsonWrong(false);
            setRound(round + 1);
          }}
        />
      )}
      <div ref={json} class="method" hidden={way !== "json"}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (entered !== undefined && !isDisabled) send(entered);
          }}
        >
          <JsonAnswer
            key={round}
            onChange={setEntered}
            faults={sent === "json" ? faults : []}
            onWrong={(why) => setJsonWrong(why !== null)}
          />
          <div class="bar end">
            <button class="primary" disabled={entered === undefined || isDisabled}>
              Send answer
            </button>
          </div>
        </form>
      </div>
    </fieldset>
  );
}
