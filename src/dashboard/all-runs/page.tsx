import { useSignal } from "@preact/signals";
import { getDashboardSettings, listCrons } from "../api/client.ts";
import { currentLocation, navigate } from "../app/page-location.ts";
import { fromDatetimeLocal, toDatetimeLocal } from "../components/datetime-local.ts";
import { assistantLabel, useAssistants } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { freeWords } from "../threads/thread-search-filter.ts";
import {
  cronFilterValue,
  rangeTimeOf,
  RUN_LIST_PERIODS,
  RUN_LIST_STATUSES,
  runListStatusText,
  RANGE_PERIOD,
} from "./run-filter.ts";
import { BROWSER_TIME_ZONE } from "../crons/next-runs.tsx";
import { AllRunsList } from "./all-runs-list.tsx";
import { DebouncedSearchField } from "./debounced-search-field.tsx";

/** The largest number of crons that are offered as filters. */
const MAX_CRONS = 100;

type Options = readonly (readonly [value: string, text: string])[];

/** Returns the options with one for `value`, if there is none yet. */
const withOption = (options: Options, value: string): Options =>
  options.some(([one]) => one === value) ? options : [...options, [value, value]];

/** The runs of all threads. The filters are stored in the query of the address. */
export function RunsPage({ query }: { readonly query: URLSearchParams }) {
  const assistants = useAssistants();
  const graphs = [...new Set(assistants.map(({ graph_id }) => graph_id))];
  const { value: crons = [] } = useResource(() => listCrons(MAX_CRONS, 0), []);
  const { value: settings } = useResource(getDashboardSettings, []);
  const valueOf = (name: string) => query.get(name) ?? "";
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const want = (name: string, value: string) => {
    const given = Object.fromEntries(currentLocation.peek().query);
    // Another choice of the time drops the range.
    const range = name === "since" ? { after: null, before: null } : {};
    // Clears the cursor, so that the list with the new filter begins at its newest run.
    navigate(["runs"], { ...given, ...range, cursor: null, [name]: value.trim() });
  };
  const stray = freeWords(valueOf("of"));
  const choice = (name: string, label: string, options: Options) => (
    <select
      aria-label={label}
      value={valueOf(name)}
      onChange={({ currentTarget }) => want(name, currentTarget.value)}
    >
      {/* What the address names may have been deleted, or is not read yet. The list is filtered by it all the same. */}
      {withOption(options, valueOf(name)).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
  const text = (name: string, label: string) => (
    <DebouncedSearchField label={label} value={valueOf(name)} onSettle={(value) => want(name, value)} />
  );
  const [after, before] = [rangeTimeOf(query, "after"), rangeTimeOf(query, "before")];
  const time = (name: "after" | "before", label: string, value: string | undefined) => (
    <DebouncedSearchField
      label={label}
      type="datetime-local"
      value={value === undefined ? "" : toDatetimeLocal(value)}
      onSettle={(local) => want(name, local === "" ? "" : fromDatetimeLocal(local))}
    />
  );
  return (
    <article class="page all-runs">
      <form class="pad" role="search" onSubmit={(event) => event.preventDefault()}>
        <h1>Runs</h1>
        {choice("status", "Status", [
          ["", "Any status"],
          ...RUN_LIST_STATUSES.map((status) => [status, runListStatusText(status)] as const),
        ])}
        {choice("since", "Created", [
          ["", "Any time"],
          ...RUN_LIST_PERIODS.map(([name, label]) => [name, label] as const),
          [RANGE_PERIOD, "From … to …"],
        ])}
        {valueOf("since") === RANGE_PERIOD && (
          <span class="range" role="group" aria-label={`Created, in ${BROWSER_TIME_ZONE}`}>
            {time("after", "Created from", after)}
            <span aria-hidden="true">–</span>
            {time("before", "Created before", before)}
          </span>
        )}
        {choice("graph", "Graph", [["", "Any graph"], ...graphs.map((graph) => [graph, graph] as const)])}
        {choice("assistant", "Assistant", [
          ["", "Any assistant"],
          ...assistants.map((one) => [one.assistant_id, assistantLabel(one)] as const),
        ])}
        {choice("from", "Started from", [
          ["", "From anywhere"],
          ["dashboard", "From the dashboard"],
          ["api", "From the API"],
          ["socket", "From a WebSocket"],
          ["timer", "From a timer"],
          ...crons.map(
            ({ cron_id, schedule }) => [cronFilterValue(cron_id), `From cron ${schedule}`] as const,
          ),
        ])}
        {text("error", "Error contains…")}
        {text("of", "Thread ID or metadata name=value")}
        {after !== undefined && before !== undefined && after >= before && (
          <p class="dim" role="status">
            No run was created in this range: it ends before it begins.
          </p>
        )}
        {stray.length > 0 && (
          <p class="dim" role="status">
            “{stray.join(" ")}” is ignored: it is neither a complete ID nor name=value.
          </p>
        )}
      </form>
      <AllRunsList
        key={query.toString()}
        query={query}
        chosen={chosen}
        assistants={assistants}
        prices={settings?.prices ?? {}}
      />
    </article>
  );
}
