import { useState } from "preact/hooks";
import {
  createAssistant,
  deleteAssistant,
  getAssistant,
  listAssistantVersions,
  setAssistantVersion,
  updateAssistant,
} from "../api/client.ts";
import type { AssistantFields } from "../api/client.ts";
import type { Assistant, AssistantVersionRow } from "../api/records.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { hrefOf, navigate } from "../app/page-location.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { JsonDiff } from "../components/json-diff.tsx";
import { LeaveConfirmation } from "../components/leave-confirmation.tsx";
import { EmptyState, ErrorAlert } from "../components/empty-state.tsx";
import { Age } from "../components/age.tsx";
import { assistantLabel, useAssistantList } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { differingMembers } from "./differing-members.ts";
import { AssistantForm } from "./assistant-form.tsx";

/** The largest number of versions that are listed. */
const MAX_VERSIONS = 200;

interface PageProps {
  /** The id of an assistant, or `new` for the form of a new one; undefined if none is chosen. */
  readonly chosen: string | undefined;
  readonly query: URLSearchParams;
}

/** The page of all assistants. An assistant is a graph with settings of its own, which are stored in versions. */
export function AssistantsPage({ chosen, query }: PageProps) {
  const list = useAssistantList();
  const assistants = list.value ?? [];
  const assistant = assistants.find(({ assistant_id }) => assistant_id === chosen);
  const graphs = [...new Set(assistants.map(({ graph_id }) => graph_id))].toSorted();
  return (
    <article class="page sided">
      <aside class="pad" aria-label="Assistants">
        <div class="bar">
          <h1 class="space">Assistants</h1>
          <a class="button primary" href={hrefOf(["assistants", "new"])}>
            Create
          </a>
        </div>
        {list.error !== null && <ErrorAlert text={list.error} onRetry={list.reload} />}
        <ul>
          {assistants.map((one) => (
            <li key={one.assistant_id}>
              <a
                href={hrefOf(["assistants", one.assistant_id])}
                aria-current={one === assistant ? "true" : undefined}
              >
                {assistantLabel(one)}
              </a>
            </li>
          ))}
        </ul>
      </aside>
      <div class="pad main">
        {list.value === undefined ? null : chosen === "new" ? (
          <NewAssistant graphs={graphs} onChanged={list.reload} />
        ) : assistant !== undefined ? (
          <AssistantDetail
            key={assistant.assistant_id}
            assistant={assistant}
            graphs={graphs}
            compared={query.get("with")}
            onChanged={list.reload}
          />
        ) : list.isReading ? null : (
          <EmptyState
            title={chosen === undefined ? "Choose an assistant, or create one" : "Assistant not found"}
          >
            <p class="dim">
              An assistant is a graph with its own settings. Each graph has a default assistant. Each change
              creates a new version.
            </p>
          </EmptyState>
        )}
      </div>
    </article>
  );
}

function NewAssistant({ graphs, onChanged }: Pick<DetailProps, "graphs" | "onChanged">) {
  const [isEdited, setEdited] = useState(false);
  return (
    <>
      <h2>Create assistant</h2>
      <AssistantForm
        assistant={null}
        graphs={graphs}
        onEdit={setEdited}
        onSave={async (fields) => {
          const { assistant_id } = await createAssistant(fields);
          showNotice("Assistant created.");
          onChanged();
          navigate(["assistants", assistant_id]);
        }}
      />
      <LeaveConfirmation isEdited={isEdited} />
    </>
  );
}

interface DetailProps {
  readonly assistant: Assistant;
  readonly graphs: readonly string[];
  /** The number of the version that is compared with the current version; null if none is. */
  readonly compared: string | null;
  readonly onChanged: () => void;
}

function AssistantDetail({ assistant, graphs, compared, onChanged }: DetailProps) {
  const { assistant_id: id, version, metadata } = assistant;
  const [isDeleting, setDeleting] = useState(false);
  const [isEdited, setEdited] = useState(false);
  /**
   * Changes (`fields`) that are not saved before the user confirms, because another version (`now`) has become current
   * since the form was opened; null if there are none.
   */
  const [late, setLate] = useState<{ readonly fields: AssistantFields; readonly now: Assistant } | null>(
    null,
  );
  const save = async (fields: AssistantFields) => {
    const after = await updateAssistant(id, fields);
    showNotice(`Version ${after.version} created.`);
    onChanged();
  };
  const remove = () =>
    runAction(async () => {
      const now = await getAssistant(id);
      if (now.version !== version) {
        onChanged();
        throw new Error(
          `The assistant was not deleted: somebody else has made version ${now.version} current. Look at it again.`,
        );
      }
      await deleteAssistant(id);
      showNotice("Assistant deleted.");
      onChanged();
      navigate(["assistants"]);
    });
  return (
    <>
      <div class="bar">
        <h2 class="space">
          {assistantLabel(assistant)} <span class="dim">version {version}</span>{" "}
          <CopyButton text={id} label="assistant ID" />
        </h2>
        <a class="button" href={hrefOf(["new"], { graph: id })}>
          Start a thread
        </a>
        <a class="button quiet" href={hrefOf(["runs"], { assistant: id })}>
          View runs
        </a>
        <a class="button quiet" href={hrefOf(["graphs", id])}>
          Graph
        </a>
        {metadata["created_by"] !== "system" && (
          <button type="button" class="quiet" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )}
      </div>
      <AssistantForm
        // When another version becomes current, the form is created anew with the settings of that version.
        key={version}
        assistant={assistant}
        graphs={graphs}
        onEdit={setEdited}
        onSave={async (fields) => {
          const now = await getAssistant(id);
          if (now.version === version) await save(fields);
          else setLate({ fields, now });
        }}
      />
      <Versions assistant={assistant} isEdited={isEdited} compared={compared} onChanged={onChanged} />
      <LeaveConfirmation isEdited={isEdited} />
      {late !== null && (
        <ConfirmDialog
          title={`Version ${late.now.version} became current while you were editing.`}
          text={`It differs from version ${version} in: ${namesOf(differingMembers(settingsOf(assistant), settingsOf(late.now)))}. Your version would replace: ${namesOf(Object.keys(late.fields))}.`}
          yes="Overwrite with my version"
          onYes={() => void runAction(() => save(late.fields))}
          onClose={() => setLate(null)}
        />
      )}
      {isDeleting && (
        <ConfirmDialog
          title="Delete the assistant?"
          text="This permanently deletes the assistant, its versions and its crons. Its threads and runs are kept."
          yes="Delete"
          onYes={() => void remove()}
          onClose={() => setDeleting(false)}
        />
      )}
    </>
  );
}

interface VersionsProps extends Omit<DetailProps, "graphs"> {
  /** Whether the form has changes that are not saved. */
  readonly isEdited: boolean;
}

function Versions({ assistant, isEdited, compared, onChanged }: VersionsProps) {
  const [dropping, setDropping] = useState<number | null>(null);
  const { assistant_id: id, version: current } = assistant;
  const versions = useResource(() => listAssistantVersions(id, MAX_VERSIONS), [current]);
  const rows = versions.value ?? [];
  const other = rows.find(({ version }) => String(version) === compared);
  const set = (version: number) =>
    void runAction(async () => {
      await setAssistantVersion(id, version);
      showNotice(`Version ${version} is now current.`);
      onChanged();
    });
  return (
    <section class="versions">
      <h3>Versions</h3>
      {versions.error !== null && <ErrorAlert text={versions.error} onRetry={versions.reload} />}
      <ol>
        {rows.map(({ version, name, created_at }, i) => (
          <li key={version} class="bar">
            <strong>{version}</strong>
            <span>{name}</span>
            <span class="dim space">
              <Age since={created_at} isAgo />
              {changesOf(rows[i], rows[i + 1])}
            </span>
            {version === current ? (
              <span class="dim">current</span>
            ) : (
              <>
                <a
                  href={hrefOf(["assistants", id], { with: version })}
                  aria-current={version === other?.version ? "true" : undefined}
                >
                  Compare with {version}
                </a>
                <button type="button" onClick={() => (isEdited ? setDropping(version) : set(version))}>
                  Make version {version} current
                </button>
              </>
            )}
          </li>
        ))}
      </ol>
      {dropping !== null && (
        <ConfirmDialog
          title="Discard unsaved changes?"
          text={`The form will show version ${dropping}.`}
          yes="Discard"
          onYes={() => set(dropping)}
          onClose={() => setDropping(null)}
        />
      )}
      {other !== undefined && other.version !== current && (
        <>
          <h4>
            From version {other.version} to version {current}
          </h4>
          <JsonDiff before={settingsOf(other)} after={settingsOf(assistant)} />
        </>
      )}
    </section>
  );
}

const namesOf = (names: readonly string[]): string => (names.length === 0 ? "nothing" : names.join(", "));

function settingsOf({
  graph_id,
  name,
  description,
  config,
  context,
  metadata,
}: Assistant | AssistantVersionRow) {
  return { graph_id, name, description, config, context, metadata };
}

/** Returns a text that names the settings that differ between a version and the next older one. */
function changesOf(row: AssistantVersionRow | undefined, older: AssistantVersionRow | undefined): string {
  if (row === undefined || older === undefined) return "";
  const names = differingMembers(settingsOf(older), settingsOf(row));
  return ` · ${names.length === 0 ? "no change" : `changed ${names.join(", ")}`}`;
}
