import { useId, useMemo, useState } from "preact/hooks";
import { useFormValidation, useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { schemaOfValues } from "../components/form-schema.ts";
import { SchemaFields } from "../components/schema-form.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { Markdown } from "../components/markdown.tsx";
import type { ProposedAction, DecisionKind, ActionReview, ActionDecision } from "./proposed-actions.ts";

interface ActionReviewFormProps {
  readonly proposal: ActionReview;
  readonly onChange: (answer: unknown) => void;
}

/** The actions that a graph proposes, each with buttons for the user's decision. */
export function ActionReviewForm({ proposal, onChange }: ActionReviewFormProps) {
  const [decisions, setDecisions] = useState<ReadonlyMap<number, ActionDecision>>(new Map());
  const say = (place: number, one: ActionDecision | undefined) => {
    const next = new Map(decisions);
    if (one === undefined) next.delete(place);
    else next.set(place, one);
    setDecisions(next);
    const all = proposal.actions.map((_, i) => next.get(i));
    onChange(all.every((each) => each !== undefined) ? proposal.answer(all) : undefined);
  };
  return (
    <>
      {proposal.actions.map((action, i) => (
        <ActionForm key={i} action={action} onChange={(one) => say(i, one)} />
      ))}
    </>
  );
}

const TITLES = { accept: "Accept", edit: "Edit", respond: "Respond", ignore: "Ignore" } as const;

function ActionForm({
  action,
  onChange,
}: {
  action: ProposedAction;
  onChange: (decision: ActionDecision | undefined) => void;
}) {
  const id = useId();
  const [way, setWay] = useState<DecisionKind | null>(null);
  const [args, setArgs] = useState(action.args);
  const [text, setText] = useState("");
  const schema = useMemo(() => schemaOfValues(action.args), [action.args]);
  const validation = useFormValidation(schema, args);
  const isWrong = validation.errors.size > 0;
  useReportBeforeNextEvent(() => {
    if (way === "edit") onChange(isWrong ? undefined : { way, args });
  }, [way, args, isWrong]);
  const respond = (written: string) =>
    onChange(written === "" ? undefined : { way: "respond", text: written });
  const choose = (next: DecisionKind) => {
    setWay(next);
    if (next === "respond") respond(text);
    else if (next !== "edit") onChange({ way: next });
  };
  return (
    <div class="action">
      <p class="asked">
        <span class="dim">wants to</span> <code>{action.name}</code>
      </p>
      {action.description !== null && <Markdown text={action.description} />}
      {way !== "edit" && <JsonTree value={action.args} open={2} />}
      <div class="ways" role="group" aria-label={`Decision about ${action.name}`}>
        {action.ways.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={way === one}
            class={one === "ignore" ? "danger" : ""}
            onClick={() => choose(one)}
          >
            {TITLES[one]}
          </button>
        ))}
      </div>
      {way === "edit" && (
        <SchemaFields schema={schema} value={args} validation={validation} onChange={setArgs} />
      )}
      {way === "respond" && (
        <textarea
          id={id}
          rows={2}
          aria-label={`Response to ${action.name}`}
          value={text}
          onInput={({ currentTarget: { value } }) => {
            setText(value);
            respond(value);
          }}
        />
      )}
    </div>
  );
}
