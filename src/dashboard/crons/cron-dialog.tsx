import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { createCron, getAssistantSchemas, getCron, updateCron } from "../api/client.ts";
import { type Assistant, type Cron, isJsonRecord, type JsonRecord } from "../api/records.ts";
import { FormDialog } from "../components/form-dialog.tsx";
import { FormFooter } from "../components/form-footer.tsx";
import { JsonField } from "../components/json-field.tsx";
import { Loading } from "../components/empty-state.tsx";
import { NoAssistants } from "../components/no-assistants.tsx";
import { assistantLabel } from "../components/use-assistants.ts";
import { useReportBeforeNextEvent } from "../components/use-form-validation.ts";
import { useResource } from "../components/use-resource.ts";
import { useSubmit } from "../components/use-submit.ts";
import { EMPTY_RUN_DRAFT, type RunInputDraft } from "../threads/run-drafts.ts";
import { RunInputFields, useRunInput } from "../threads/run-input-fields.tsx";
import {
  contextSchemaWithDefaults,
  optionsFaultOf,
  requestFieldsOf,
  RunOptions,
  StrategyChoice,
} from "../threads/run-options.tsx";
import {
  assertCronNotOverwritten,
  cronChanges,
  type CronFields,
  runDraftFromCronInput,
  cronEndTimeOf,
  fieldsOfCron,
  newCronRequest,
  settingsOfCron,
  cronTimesOf,
  placeOf,
  TIME_ZONES,
} from "./cron-fields.ts";
import { BROWSER_TIME_ZONE, NextRuns } from "./next-runs.tsx";
import { useSchedulePreview } from "./schedule-preview.ts";
import { CronThreadLink, ThreadChoice, threadIdFaultOf } from "./thread-choice.tsx";

interface CronDialogProps {
  /** The cron to edit; null to create one. */
  readonly cron: Cron | null;
  /** Undefined until the assistants have been read. */
  readonly assistants: readonly Assistant[] | undefined;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** A dialog to create or edit a cron. */
export function CronDialog({ cron, assistants, onSaved, onClose }: CronDialogProps) {
  const [isEdited, setEdited] = useState(false);
  // The schema decides in which fields the stored input is shown.
  const schemas = useResource(
    async () => (cron === null ? null : getAssistantSchemas(cron.assistant_id)),
    [],
  );
  const schema = schemas.value?.input_schema ?? null;
  const isReady = assistants !== undefined && (schemas.value !== undefined || schemas.error !== null);
  return (
    <FormDialog title={cron === null ? "New cron" : "Edit cron"} wide isEdited={isEdited} onClose={onClose}>
      {!isReady ? (
        <Loading />
      ) : assistants.length === 0 && cron === null ? (
        <NoAssistants />
      ) : (
        <CronForm
          cron={cron}
          assistants={assistants}
          draft={cron === null ? EMPTY_RUN_DRAFT : runDraftFromCronInput(cron.payload["input"], schema)}
          onEdit={setEdited}
          onSaved={onSaved}
          onClose={onClose}
        />
      )}
    </FormDialog>
  );
}

/** The state values of a new thread. */
const NO_VALUES: JsonRecord = {};

interface CronFormProps extends CronDialogProps {
  readonly assistants: readonly Assistant[];
  /** The input with which the form begins. */
  readonly draft: RunInputDraft;
  /** Called with true when the form has unsaved input, and with false when it has none or is being saved. */
  readonly onEdit: (isEdited: boolean) => void;
}

function CronForm({ cron, assistants, draft: initialDraft, onEdit, onSaved, onClose }: CronFormProps) {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const endField = useRef<HTMLInputElement>(null);
  const submit = useSubmit();
  const [draft] = useState(initialDraft);
  const [fields, setFields] = useState(() => fieldsOfCron(cron));
  const change = (changed: Partial<CronFields>) => setFields((last) => ({ ...last, ...changed }));
  const [settings, setSettings] = useState(() => settingsOfCron(cron));
  const [chosen, setChosen] = useState(cron?.assistant_id ?? assistants[0]?.assistant_id ?? "");
  const assistant = assistants.find(({ assistant_id }) => assistant_id === chosen);
  const entered = useRunInput(chosen, draft, fields.thread === null ? NO_VALUES : null);
  const contextSchema = useMemo(
    () => contextSchemaWithDefaults(entered.schemas.value?.context_schema, assistant?.context),
    [entered.schemas.value, assistant],
  );
  const [isSubmitted, setSubmitted] = useState(false);
  const [isEndIncomplete, setEndIncomplete] = useState(false);
  const [metadataFault, setMetadataFault] = useState<string | null>(null);

  const isInputEdited =
    entered.text !== draft.text || entered.json !== draft.json || !isSame(entered.input, draft.input);
  const isSettingsEdited =
    Object.keys(settings.unread ?? {}).length > 0 ||
    !isSame(requestFieldsOf(settings, true), requestFieldsOf(settingsOfCron(cron), true));
  const isEdited =
    isInputEdited || isSettingsEdited || metadataFault !== null || !isSame(fields, fieldsOfCron(cron));
  const isUnsaved = isEdited && !submit.isSending;
  useReportBeforeNextEvent(() => onEdit(isUnsaved), [isUnsaved]);

  const times = { ...cronTimesOf(fields), end_time: cronEndTimeOf(fields, cron) };
  const { preview, error } = useSchedulePreview(times);
  const serverFault = (at: string) => preview?.faults.find((fault) => fault.at === at)?.message ?? null;
  const faults = {
    schedule: times.schedule === "" ? (isSubmitted ? "is required" : null) : serverFault("schedule"),
    timezone: serverFault("timezone"),
    end_time: isEndIncomplete ? "is incomplete" : serverFault("end_time"),
  };

  /** Counts the attempts to send invalid input. Each moves the focus to the first invalid field. */
  const [refusals, setRefusals] = useState(0);
  useLayoutEffect(() => {
    if (refusals > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refusals]);
  const send = () => {
    setSubmitted(true);
    const isIncomplete = endField.current?.validity.badInput === true;
    setEndIncomplete(isIncomplete);
    const isInputValid = (cron !== null && !isInputEdited) || entered.validate();
    const isValid =
      isInputValid &&
      !isIncomplete &&
      times.schedule !== "" &&
      (preview?.faults ?? []).length === 0 &&
      metadataFault === null &&
      (cron !== null || threadIdFaultOf(fields.thread) === null);
    if (!isValid) return setRefusals((before) => before + 1);
    submit.start(async () => {
      const wrong = cron !== null && !isSettingsEdited ? null : optionsFaultOf(settings, contextSchema);
      if (wrong !== null) throw new Error(wrong);
      if (cron === null) {
        const request = newCronRequest(chosen, { fields, settings, input: entered.given });
        await createCron(fields.thread?.trim() ?? null, request);
      } else {
        const input = isInputEdited ? entered.given : undefined;
        const changes = cronChanges(cron, { fields, settings, input });
        assertCronNotOverwritten(cron, await getCron(cron.cron_id), changes);
        await updateCron(cron.cron_id, changes);
      }
      onSaved();
    });
  };

  return (
    <form
      class="cron-form"
      ref={form}
      noValidate
      aria-busy={submit.isSending}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="fields">
        {cron === null ? (
          <div class="field">
            <label for={`${id}-assistant`}>Assistant</label>
            <select
              id={`${id}-assistant`}
              value={chosen}
              onChange={({ currentTarget }) => {
                setChosen(currentTarget.value);
                entered.onAssistantChosen();
              }}
            >
              {assistants.map((one) => (
                <option
                  key={one.assistant_id}
                  value={one.assistant_id}
                  selected={one.assistant_id === chosen}
                >
                  {assistantLabel(one)}
                </option>
              ))}
            </select>
          </div>
        ) : (
          <p>
            {assistant === undefined ? chosen : assistantLabel(assistant)} · <CronThreadLink {...cron} />
          </p>
        )}
        <TextField
          id={`${id}-schedule`}
          label="Schedule"
          isRequired
          isCode
          value={fields.schedule}
          placeholder="0 9 * * MON-FRI"
          fault={faults.schedule}
          hint="Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly."
          onChange={(schedule) => change({ schedule })}
        />
        <TextField
          id={`${id}-timezone`}
          label="Time zone"
          value={fields.timezone}
          placeholder="UTC"
          options={TIME_ZONES}
          fault={faults.timezone}
          onChange={(timezone) => change({ timezone })}
        />
        <div aria-live="polite">
          {times.schedule !== "" && (
            <div class="next-runs-area">
              <NextRuns
                preview={preview}
                error={error}
                timezone={times.timezone ?? "UTC"}
                hasEnd={times.end_time !== null}
              />
            </div>
          )}
        </div>
        {cron === null && (
          <ThreadChoice
            thread={fields.thread}
            isSubmitted={isSubmitted}
            onChange={(thread) => change({ thread })}
          />
        )}
        {fields.thread === null ? (
          <label class="field">
            <span>When a run ends</span>
            <select
              value={fields.onRunCompleted}
              onChange={({ currentTarget }) =>
                change({ onRunCompleted: currentTarget.value as CronFields["onRunCompleted"] })
              }
            >
              {COMPLETIONS.map(([value, label]) => (
                <option key={value} value={value} selected={value === fields.onRunCompleted}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <StrategyChoice
            value={settings.strategy}
            onChange={(strategy) => setSettings((last) => ({ ...last, strategy }))}
          />
        )}
        <fieldset class="fields">
          <legend>Input</legend>
          <RunInputFields entered={entered} />
          <div class="bar">
            <button
              type="button"
              class="quiet"
              aria-pressed={entered.isJson}
              onClick={() => entered.toggleJson()}
            >
              JSON
            </button>
            <RunOptions settings={settings} isBusy={false} context={contextSchema} onChange={setSettings} />
          </div>
          {[entered.fault, entered.schemas.error].map(
            (text) =>
              text !== null && (
                <p class="hint bad" role="alert" key={text}>
                  {text}
                </p>
              ),
          )}
        </fieldset>
        <div class="field">
          <label for={`${id}-end`}>End time ({BROWSER_TIME_ZONE})</label>
          <input
            id={`${id}-end`}
            ref={endField}
            type="datetime-local"
            max="9999-12-31T23:59"
            value={fields.endTime}
            aria-invalid={faults.end_time !== null}
            aria-describedby={`${id}-end-hint`}
            onInput={({ currentTarget }) => {
              setEndIncomplete(false);
              change({ endTime: currentTarget.value });
            }}
          />
          <p
            class={faults.end_time === null ? "hint" : "hint bad"}
            id={`${id}-end-hint`}
            {...(faults.end_time !== null && { role: "alert" })}
          >
            {faults.end_time ?? "No run starts after this time. Leave empty for no end."}
          </p>
        </div>
        <div class="field">
          <label for={`${id}-metadata`}>Metadata</label>
          <JsonField
            id={`${id}-metadata`}
            value={Object.keys(fields.metadata).length === 0 ? undefined : fields.metadata}
            placeholder={'{"team": "support"}'}
            isStrict
            isQuiet
            aria-invalid={metadataFault !== null}
            aria-describedby={`${id}-metadata-hint`}
            onChange={(value, text) => {
              const metadata = text.trim() === "" ? {} : value;
              setMetadataFault(isJsonRecord(metadata) ? null : "must be a JSON object");
              if (isJsonRecord(metadata)) change({ metadata });
            }}
            onWrong={(why) => why !== null && setMetadataFault(why)}
          />
          <p class={metadataFault === null ? "hint" : "hint bad"} id={`${id}-metadata-hint`} role="status">
            {metadataFault ??
              (cron === null
                ? "Each run gets this metadata, too."
                : "Metadata fields can be added and replaced, but not deleted.")}
          </p>
        </div>
        <label class="inline">
          <input
            type="checkbox"
            checked={fields.enabled}
            onChange={({ currentTarget }) => change({ enabled: currentTarget.checked })}
          />{" "}
          Enabled
        </label>
      </div>
      <FormFooter
        submit={submit}
        words={cron === null ? "Create cron" : "Save"}
        isUnchanged={cron !== null && !isEdited}
        onCancel={onClose}
      >
        <span class="space" />
      </FormFooter>
    </form>
  );
}

const COMPLETIONS = [
  ["delete", "Delete the run and its thread"],
  ["keep", "Keep the run and its thread"],
] as const;

const isSame = (one: CronFields | JsonRecord, other: CronFields | JsonRecord): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

interface TextFieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  /** What is wrong with the text; null if nothing is. */
  readonly fault: string | null;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly isCode?: boolean;
  /** Suggested time zones. */
  readonly options?: readonly string[];
  readonly onChange: (value: string) => void;
}

function TextField({
  id,
  label,
  fault,
  hint,
  options,
  isRequired = false,
  isCode = false,
  ...field
}: TextFieldProps) {
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="dim"> (required)</span>}
      </label>
      <input
        id={id}
        type="text"
        class={isCode ? "code" : ""}
        autoComplete="off"
        spellcheck={false}
        value={field.value}
        placeholder={field.placeholder}
        {...(options !== undefined && { list: `${id}-list` })}
        aria-required={isRequired}
        aria-invalid={fault !== null}
        aria-describedby={`${id}-hint`}
        onInput={({ currentTarget }) => field.onChange(currentTarget.value)}
      />
      {options !== undefined && (
        // Browsers search the labels, too.
        <datalist id={`${id}-list`}>
          {options.map((one) => (
            <option key={one} value={one} label={placeOf(one)} />
          ))}
        </datalist>
      )}
      {(fault !== null || hint !== undefined) && (
        <p
          class={fault === null ? "hint" : "hint bad"}
          id={`${id}-hint`}
          {...(fault !== null && { role: "alert" })}
        >
          {fault ?? hint}
        </p>
      )}
    </div>
  );
}
