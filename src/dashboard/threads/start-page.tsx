import { createRunOnNewThread, getAssistantSchemas, listThreads } from "../api/client.ts";
import type { Assistant } from "../api/records.ts";
import { runAction } from "../app/notices.ts";
import { hrefOf, navigate } from "../app/page-location.ts";
import { ActionButton } from "../components/action-button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { useAssistants } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { exampleInput, inputSchemaFor } from "./run-input.ts";

/** The largest number of graphs that get a button on the page. */
const MAX_GRAPHS = 12;

/**
 * The page that is shown if no thread is chosen. If there are no threads yet, it has buttons that run a graph with an
 * example input.
 */
export function StartPage() {
  const { value: first } = useResource(() => listThreads({}, "latest", 0, 1), []);
  const graphs = useAssistants().filter(({ metadata }) => metadata["created_by"] === "system");
  const isFirstVisit = first?.total === 0 && graphs.length > 0;
  return (
    <EmptyState title={isFirstVisit ? "Run a graph to see what it does." : "Choose a thread or create one."}>
      <p class="dim">A thread is a graph's persisted state; a run is one execution of the graph on it.</p>
      {isFirstVisit && (
        <ul class="bar" aria-label="Graphs">
          {graphs.slice(0, MAX_GRAPHS).map((graph) => (
            <li key={graph.assistant_id}>
              <ActionButton class="primary" onAct={() => runAction(() => tryGraph(graph))}>
                Run {graph.graph_id}
              </ActionButton>
            </li>
          ))}
        </ul>
      )}
      <a class={isFirstVisit ? "button quiet" : "button primary"} href={hrefOf(["new"])}>
        {isFirstVisit ? "Run with your own input" : "New thread"}
      </a>
    </EmptyState>
  );
}

/**
 * Runs a graph with an example input. If there is no example that matches its schema, opens the form for a new run.
 */
async function tryGraph({ assistant_id }: Assistant): Promise<void> {
  const input = exampleInput(inputSchemaFor(await getAssistantSchemas(assistant_id), {}));
  if (input === null) return navigate(["new"], { graph: assistant_id });
  const { thread_id } = await createRunOnNewThread({}, { assistant_id, input });
  navigate(["threads", thread_id]);
}
