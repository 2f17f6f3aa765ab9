import { getAssistantSchemas } from "../api/client.ts";
import { hrefOf } from "../app/page-location.ts";
import { assistantLabel, useAssistantList } from "../components/use-assistants.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { NoAssistants } from "../components/no-assistants.tsx";
import { useResource } from "../components/use-resource.ts";
import { getGraphStatechart, HIDDEN_GRAPH_TEXT } from "./graph-statechart.ts";
import { StatechartView, usePreloadedLayoutWorker } from "./statechart-view.tsx";

interface GraphsPageProps {
  /**
   * The id of an assistant, or the name of a graph, which stands for the graph's default assistant. Undefined: the
   * first assistant in the list.
   */
  readonly chosen: string | undefined;
}

/** The graph of the chosen assistant as a chart, and its input and output schemas. */
export function GraphsPage({ chosen }: GraphsPageProps) {
  usePreloadedLayoutWorker();
  const { value: assistants = [], error, isReading, reload } = useAssistantList();
  const assistant =
    chosen === undefined
      ? assistants[0]
      : assistants.find(({ assistant_id, graph_id }) => [assistant_id, graph_id].includes(chosen));
  if (error !== null && assistants.length === 0) return <ErrorAlert text={error} onRetry={reload} />;
  if (assistants.length === 0) return isReading ? <Loading isPadded /> : <NoAssistants />;
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
      {assistant === undefined ? (
        <EmptyState title="Assistant not found" />
      ) : (
        <>
          <Graph key={assistant.assistant_id} graph={assistant.graph_id} assistant={assistant.assistant_id} />
          <div class="pad">
            <details class="more">
              <summary>Assistant (JSON)</summary>
              <CopyButton text={assistant.assistant_id} label="assistant ID" shown="Copy ID" />
              <JsonTree value={assistant} open={2} />
            </details>
          </div>
        </>
      )}
    </article>
  );
}

function Graph({ graph, assistant }: { readonly graph: string; readonly assistant: string }) {
  const chart = useResource(() => getGraphStatechart(graph), [graph]);
  const schemas = useResource(() => getAssistantSchemas(assistant), [assistant]);
  return (
    <div class="pad graphs">
      <div class="bar">
        <h2 class="space">{graph}</h2>
        <a class="button primary" href={hrefOf(["new"], { graph: assistant })}>
          Start a thread
        </a>
      </div>
      {chart.error !== null && <ErrorAlert text={chart.error} onRetry={chart.reload} />}
      {chart.value === null && <p class="note">{HIDDEN_GRAPH_TEXT}</p>}
      {typeof chart.value === "string" && (
        <StatechartView definition={chart.value} value={undefined} tasks={[]} label={`Graph ${graph}`} />
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
