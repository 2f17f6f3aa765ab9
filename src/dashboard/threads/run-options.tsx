import { useId, useState } from "preact/hooks";
import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { Dialog } from "../components/dialogs.tsx";
import { validateFormValue } from "../components/form-schema.ts";
import { useFormValidation } from "../components/use-form-validation.ts";
import { SchemaFields } from "../components/schema-form.tsx";
import { JsonField } from "../components/json-field.tsx";
import { MULTITASK_STRATEGY_OPTIONS, type MultitaskStrategyName } from "./multitask-strategy-options.ts";

export interface RunSettings {
  readonly strategy: MultitaskStrategyName;
  readonly before?: string;
  readonly after?: string;
  readonly config?: JsonRecord;
  readonly context?: JsonRecord;
  readonly checkpoint?: string;
  /**
   * The texts of fields that do not contain a JSON object, by the field's name. The form cannot be sent while there
   * are any.
   */
  readonly unread?: Readonly<Partial<Record<Name, string>>>;
}

type Name = "config" | "context";

/**
 * Returns the schema of a run's context in which the values that the assistant supplies are the defaults, so that the
 * form shows them and does not require them.
 */
export function contextSchemaWithDefaults(
  schema: JsonSchema | null | undefined,
  supplied: JsonRecord = {},
): JsonSchema | null {
  const { properties } = schema ?? {};
  if (schema === null || schema === undefined || properties === undefined) return schema ?? null;
  const withDefaults = Object.entries(properties).map(
    ([name, one]) =>
      [name, Object.hasOwn(supplied, name) ? { ...one, default: supplied[name] } : one] as const,
  );
  return { ...schema, properties: Object.fromEntries(withDefaults) };
}

/** Returns why the options cannot be sent; undefined if they can be. */
export function settingsErrorOf({ unread = {} }: RunSettings): string | undefined {
  const [name] = Object.keys(unread);
  return name === undefined ? undefined : `${name} is not a JSON object`;
}

/** Returns what is wrong with the options, as a sentence; null if nothing is. `context`: the schema of the context. */
export function optionsFaultOf(settings: RunSettings, context: JsonSchema | null): string | null {
  const unread = settingsErrorOf(settings);
  if (unread !== undefined) return `In the options, ${unread}.`;
  const [wrong] = validateFormValue(context ?? {}, settings.context);
  return wrong === undefined ? null : `In the options, ${wrong.at} ${wrong.text}.`;
}

const namesOf = (text: string | undefined): readonly string[] | "*" | undefined => {
  const names = (text ?? "").split(/[\s,]+/).filter((name) => name !== "");
  return names.length === 0 ? undefined : names.includes("*") ? "*" : names;
};

/** Converts the options to fields of a run request. */
export function requestFieldsOf(
  { strategy, before, after, config, context }: RunSettings,
  isBusy: boolean,
): JsonRecord {
  const [interrupt_before, interrupt_after] = [namesOf(before), namesOf(after)];
  return {
    ...(isBusy && { multitask_strategy: strategy }),
    ...(interrupt_before !== undefined && { interrupt_before }),
    ...(interrupt_after !== undefined && { interrupt_after }),
    ...(config !== undefined && { config }),
    ...(context !== undefined && { context }),
  };
}

interface RunOptionsProps {
  readonly settings: RunSettings;
  readonly isBusy: boolean;
  /** The schema of the context, from {@link contextSchemaWithDefaults}. */
  readonly context: JsonSchema | null;
  readonly onChange: (settings: RunSettings) => void;
}

interface StrategyProps {
  readonly value: RunSettings["strategy"];
  readonly onChange: (strategy: RunSettings["strategy"]) => void;
}

/** A menu for what happens to a new run while another run of its thread is active. */
export function StrategyChoice({ value, onChange }: StrategyProps) {
  return (
    <label class="inline">
      <span class="dim">If a run is active</span>
      <select
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value as RunSettings["strategy"])}
      >
        {MULTITASK_STRATEGY_OPTIONS.map(([name, label, what]) => (
          <option key={name} value={name} title={what} selected={name === value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The options of a run: everything besides its input and assistant. */
export function RunOptions({ settings, isBusy, context, onChange }: RunOptionsProps) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const count = Object.keys(requestFieldsOf(settings, false)).length;
  const schema = context?.properties === undefined ? null : context;
  const validation = useFormValidation(schema, settings.context ?? {});
  return (
    <>
      {isBusy && (
        <StrategyChoice
          value={settings.strategy}
          onChange={(strategy) => onChange({ ...settings, strategy })}
        />
      )}
      <button type="button" class="quiet" onClick={() => setOpen(true)}>
        Options{count > 0 && <span class="count">{count}</span>}
      </button>
      {isOpen && (
        <Dialog title="Run options" onClose={() => setOpen(false)}>
          <div
            class="fields"
            onKeyDown={(event) => {
              // The dialog is within the form of the run, which Enter in a field would send.
              if (event.key === "Enter" && event.target instanceof HTMLInputElement) event.preventDefault();
            }}
          >
            {(["before", "after"] as const).map((when) => (
              <div class="field" key={when}>
                <label for={`${id}-${when}`}>Pause {when} these nodes</label>
                <input
                  id={`${id}-${when}`}
                  value={settings[when] ?? ""}
                  placeholder="node names separated by commas, or *"
                  onInput={({ currentTarget }) => onChange({ ...settings, [when]: currentTarget.value })}
                />
              </div>
            ))}
            {schema === null ? (
              <Setting
                label="Context, as JSON"
                id={`${id}-context`}
                value={settings.context}
                unread={settings.unread?.context}
                onChange={(context, unread) => onChange(put(settings, "context", context, unread))}
              />
            ) : (
              <fieldset>
                <legend>Context</legend>
                <SchemaFields
                  schema={schema}
                  value={settings.context ?? {}}
                  validation={validation}
                  onChange={(context) => onChange(put(settings, "context", context))}
                />
              </fieldset>
            )}
            <Setting
              label="Config, as JSON"
              id={`${id}-config`}
              value={settings.config}
              unread={settings.unread?.config}
              onChange={(config, unread) => onChange(put(settings, "config", config, unread))}
            />
          </div>
        </Dialog>
      )}
    </>
  );
}

function put(settings: RunSettings, name: Name, value: JsonRecord | undefined, text?: string): RunSettings {
  const { [name]: _, unread: { [name]: __, ...others } = {}, ...rest } = settings;
  return {
    ...rest,
    ...(value !== undefined && Object.keys(value).length > 0 && { [name]: value }),
    unread: text === undefined ? others : { ...others, [name]: text },
  };
}

interface SettingProps {
  readonly label: string;
  readonly id: string;
  readonly value: JsonRecord | undefined;
  readonly unread: string | undefined;
  /**
   * Called with the JSON object in the field; undefined if the field is empty, or if its text is not a JSON object. In
   * the latter case, `unread` is the text.
   */
  readonly onChange: (value: JsonRecord | undefined, unread?: string) => void;
}

function Setting({ label, id, value, unread, onChange }: SettingProps) {
  const [why, setWhy] = useState<string | null>(null);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <JsonField
        id={id}
        value={value}
        written={unread}
        isStrict
        placeholder="{ }"
        rows={2}
        isQuiet
        aria-invalid={unread !== undefined}
        {...(unread !== undefined && { "aria-describedby": `${id}-wrong` })}
        onWrong={setWhy}
        onChange={(given, text) =>
          isJsonRecord(given) ? onChange(given) : onChange(undefined, text.trim() === "" ? undefined : text)
        }
      />
      {unread !== undefined && (
        <p class="hint bad" role="alert" id={`${id}-wrong`}>
          {why ?? "Not a JSON object: the run cannot start."}
        </p>
      )}
    </div>
  );
}
