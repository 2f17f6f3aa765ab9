import { useState } from "preact/hooks";
import { updateState } from "../api/client.ts";
import { isJson, type Json, type Schema } from "../api/records.ts";
import { attempt, tell } from "../app/session.ts";
import { Dialog } from "../parts/confirm.tsx";
import { Fields, JsonField } from "../parts/form.tsx";
import { JsonTree } from "../parts/json.tsx";

interface EditProps {
  readonly thread: string;
  readonly values: Json;
  readonly checkpoint: string;
  readonly onStored: () => void;
  readonly onClose: () => void;
}

/** Stores another state after the one at a checkpoint. */
export function Edit({ thread, values, checkpoint, onStored, onClose }: EditProps) {
  const save = (update: Json, asNode: string) =>
    attempt(async () => {
      await storeUpdate(thread, checkpoint, update, asNode);
      tell("The state is stored.");
      onStored();
      onClose();
    });
  return (
    <Change
      title="Edit the state"
      hint="Lists are added to, other keys are replaced. It makes a new state after this one, and leaves what was."
      values={values}
      submit="Store"
      onSubmit={save}
      onClose={onClose}
    />
  );
}

/** Resolves with the id of the checkpoint that it makes. */
export async function storeUpdate(
  thread: string,
  checkpoint: string,
  values: Json,
  asNode: string,
): Promise<string> {
  const made = await updateState(thread, {
    values,
    checkpoint_id: checkpoint,
    ...(asNode !== "" && { as_node: asNode }),
  });
  return made.checkpoint_id;
}

interface ChangeProps {
  readonly title: string;
  readonly hint: string;
  readonly values: Json;
  readonly submit: string;
  /** `update`: what is to be different, as a node would return it. */
  readonly onSubmit: (update: Json, asNode: string) => Promise<unknown>;
  readonly onClose: () => void;
}

/** What is to be different in a state: what is simple in fields, the rest as JSON. */
export function Change({ title, hint, values, submit, onSubmit, onClose }: ChangeProps) {
  const [fields, setFields] = useState(values);
  const [rest, setRest] = useState<unknown>({});
  const [asNode, setAsNode] = useState("");
  const schema = simpleOf(values);
  const hasFields = Object.keys(schema.properties ?? {}).length > 0;
  const changed = Object.entries(fields).filter(([name, value]) => value !== values[name]);
  const update = isJson(rest) ? { ...Object.fromEntries(changed), ...rest } : undefined;
  return (
    <Dialog title={title} wide onClose={onClose}>
      <p class="dim">{hint}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (update !== undefined) void onSubmit(update, asNode);
        }}
      >
        {hasFields && <Fields schema={schema} value={fields} onChange={setFields} />}
        <div class="field">
          <label for="edit-values">{hasFields ? "Other changes, as JSON" : "Changes, as JSON"}</label>
          <JsonField
            id="edit-values"
            value={undefined}
            isStrict
            rows={hasFields ? 2 : 6}
            placeholder={'{"topic": "coffee"}'}
            onChange={(value) => setRest(value ?? {})}
            onWrong={() => setRest(undefined)}
          />
        </div>
        <div class="field">
          <label for="edit-node">As the node (decides what runs next)</label>
          <input
            id="edit-node"
            value={asNode}
            placeholder="the one that wrote last"
            onInput={({ currentTarget }) => setAsNode(currentTarget.value)}
          />
        </div>
        <div class="bar end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="primary" disabled={update === undefined}>
            {submit}
          </button>
        </div>
        <details class="more">
          <summary>The state as it is</summary>
          <JsonTree value={values} open={2} />
        </details>
      </form>
    </Dialog>
  );
}

/** The part of a state that fields can hold. */
function simpleOf(values: Json): Schema {
  const simple = Object.entries(values).filter(([, value]) =>
    ["string", "number", "boolean"].includes(typeof value),
  );
  return {
    type: "object",
    properties: Object.fromEntries(simple.map(([name, value]) => [name, { type: typeof value }])),
  };
}
