import { getSchemas } from "../api/client.ts";
import type { ChartDefinition } from "../inspector/chart-model.ts";
import { fetchJson } from "../requests.ts";
import { hrefOf } from "../app/page-location.ts";
import { assistantLabel, useAssistantList } from "../components/use-assistants.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState, LoadFailure } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { useResource } from "../components/use-resource.ts";
import { StatechartView, usePreloadedLayoutWorker } from "./statechart-view.tsx";

/** The assistants: their graphs as charts, and their input and output schemas. */
export function GraphsPage({ chosen }: { readonly chosen: string | undefined }) {
  usePreloadedLayoutWorker();
  const { value: assistants = [], error, isReading, reload } = useAssistantList();
  const assistant = assistants.find(({ assistant_id }) => assistant_id === chosen) ?? assistants[0];
  if (error !== null && assistant === undefined) return <LoadFailure text={error} onRetry={reload} />;
  if (assistant === undefined)
    return isReading ? (
      <p class="dim pad" aria-busy="true">
        Reading…
      </p>
    ) : (
      <EmptyState title="The server has no graphs.">
        <p class="dim">They are named in its configuration, under "graphs".</p>
      </EmptyState>
    );
  return (
    <article class="page graphs-page">
      <nav class="chips" aria-label="Assistants">
        {assistants.map((one) => (
          <a
            key={one.assistant_id}
            href={hrefOf(["graphs", one.assistant_id])}
            aria-current={one === assistant ? "page" : undefined}
          >
            {assistantLabel(one)}
          </a>
        ))}
      </nav>
      <Graph key={assistant.assistant_id} graph={assistant.graph_id} assistant={assistant.assistant_id} />
      <div class="pad">
        <details class="more">
          <summary>The assistant's record</summary>
          <CopyButton text={assistant.assistant_id} label="assistant id" shown="Copy id" />
          <JsonTree value={assistant} open={2} />
        </details>
      </div>
    </article>
  );
}

function Graph({ graph, assistant }: { readonly graph: string; readonly assistant: string }) {
  const chart = useResource(
    () =>
      fetchJson<{ readonly definition: ChartDefinition }>(
        `inspect/machines/${encodeURIComponent(`graph:${graph}`)}`,
      ),
    [graph],
  );
  const schemas = useResource(() => getSchemas(assistant), [assistant]);
  return (
    <div class="pad graphs">
      <div class="bar">
        <h2 class="space">{graph}</h2>
        <a class="button primary" href={hrefOf(["new"], { graph: assistant })}>
          Start a thread
        </a>
      </div>
      {chart.error !== null && <LoadFailure text={chart.error} onRetry={chart.reload} />}
      {chart.value !== undefined && (
        <StatechartView
          definition={JSON.stringify(chart.value.definition)}
          value={undefined}
          tasks={[]}
          label={`Graph ${graph}`}
        />
      )}
      {schemas.value !== undefined && (
        <details class="more">
          <summary>Input and output</summary>
          <JsonTree value={schemas.value} open={2} />
        </details>
      )}
    </div>
  );
}
