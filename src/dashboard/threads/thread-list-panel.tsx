import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getThread, listAssistants } from "../api/client.ts";
import {
  type ThreadListOrder,
  THREAD_STATUSES,
  type ThreadRow,
  type ApiThreadStatus,
} from "../api/records.ts";
import { navigate, currentLocation, hrefOf, threadHref } from "../app/page-location.ts";
import { errorMessage } from "../app/notices.ts";
import { findThreadsByText, SEARCH_LIMIT_TEXTS } from "../live/find-threads-by-text.ts";
import { THREAD_STATUS_TEXTS } from "../live/status-texts.ts";
import { ThreadList } from "../live/thread-list.ts";
import { EmptyState, ErrorAlert } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";
import { JoinedTexts } from "../components/joined-texts.tsx";
import { Age } from "../components/age.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { errorLine, toOneLine } from "../components/one-line-text.ts";
import { isThreadTab } from "./thread-tabs.ts";
import { threadTitle } from "./thread-title.ts";
import { saveThreadSearch, loadThreadSearch, type ThreadListSearch } from "./thread-search-storage.ts";
import { VirtualThreadList } from "./virtual-thread-list.tsx";
import { threadFilterOf, freeWords } from "./thread-search-filter.ts";

/**
 * The panel with the list of all threads, sorted by last change or creation. The visible part is read again about
 * every second, less often if the server is slow.
 */
export function ThreadListPanel({ chosen }: { readonly chosen: string | undefined }) {
  const list = useMemo(() => new ThreadList(), []);
  useEffect(() => () => list.close(), []);
  const [{ text, status, graph, order }, setWanted] = useState(loadThreadSearch);
  const want = (change: Partial<ThreadListSearch>) => setWanted((before) => ({ ...before, ...change }));
  const assistants = useResource(listAssistants, []);
  const known = (assistants.value ?? []).map(({ graph_id }) => graph_id);
  const graphs = [...new Set(graph === "" ? known : [...known, graph])].toSorted();
  const filter = threadFilterOf({ text, status, graph });
  const words = freeWords(text);
  const [searched, setSearched] = useState("");
  useEffect(() => {
    saveThreadSearch({ text, status, graph, order });
    const search = new AbortController();
    const find = async () => {
      const isSearched = words.length > 0 || filter.ids !== undefined;
      setSearched(isSearched ? "Searching…" : "");
      if (!isSearched) return list.filter(filter, order);
      const { ids, limits } = await findThreadsByText(filter, words, list.descriptions, search.signal);
      setSearched(limits.map((limit) => SEARCH_LIMIT_TEXTS[limit]).join(" "));
      list.filter({ ...filter, ids }, order);
    };
    const timer = setTimeout(
      () =>
        void find().catch((cause: unknown) => {
          if (!search.signal.aborted) setSearched(errorMessage(cause));
        }),
      words.length === 0 ? 150 : 400,
    );
    return () => {
      clearTimeout(timer);
      search.abort();
    };
  }, [text, status, graph, order]);
  const total = list.total.value;
  const left = useFilteredOutThread(list, chosen, status);
  const isFiltered = Object.keys(filter).length > 0 || words.length > 0;
  return (
    <aside class="threads" aria-label="Threads">
      <div class="tools">
        <div class="bar">
          <h1>Threads {total !== null && <span class="count">{total.toLocaleString("en")}</span>}</h1>
          <a class="button primary" href={hrefOf(["new"])}>
            Create
          </a>
        </div>
        <form
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            if (filter.ids !== undefined) void jump(text.trim());
          }}
        >
          <input
            type="search"
            aria-label="Search threads: text that the list shows, the end of an ID, or name=value of their metadata"
            placeholder="Text, ID or metadata name=value"
            value={text}
            onInput={({ currentTarget }) => want({ text: currentTarget.value })}
          />
          <p class="dim stray" role="status">
            {searched}
          </p>
          <div class="bar">
            <select
              aria-label="Status"
              value={status}
              onChange={({ currentTarget }) => want({ status: currentTarget.value as ApiThreadStatus | "" })}
            >
              <option value="">Any status</option>
              {THREAD_STATUSES.map((one) => (
                <option key={one} value={one}>
                  {THREAD_STATUS_TEXTS[one]}
                </option>
              ))}
            </select>
            <select
              aria-label="Graph"
              value={graph}
              onChange={({ currentTarget }) => want({ graph: currentTarget.value })}
            >
              <option value="">Any graph</option>
              {graphs.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
            <select
              aria-label="Order"
              value={order}
              onChange={({ currentTarget }) => want({ order: currentTarget.value as ThreadListOrder })}
            >
              <option value="latest">Last updated</option>
              <option value="unchanged">Least recently updated</option>
              <option value="newest">Newest first</option>
              <option value="oldest">Oldest first</option>
            </select>
          </div>
        </form>
        {list.error.value !== null && <ErrorAlert text={list.error.value} onRetry={() => list.refresh()} />}
      </div>
      {left !== null && (
        <div class="left" role="status">
          <p class="dim">No longer matches the filter (now {THREAD_STATUS_TEXTS[left.status]}):</p>
          <Row thread={left} about={list.aboutOf(left)} isChosen />
        </div>
      )}
      {total === 0 ? (
        <EmptyState title={isFiltered ? "No matching threads" : "No threads yet"}>
          {isFiltered ? (
            <button
              type="button"
              onClick={() => {
                want({ text: "", status: "", graph: "" });
              }}
            >
              Show all threads
            </button>
          ) : (
            <a href={hrefOf(["new"])}>Create the first thread</a>
          )}
        </EmptyState>
      ) : (
        <VirtualThreadList
          list={list}
          row={(thread) => (
            <Row thread={thread} about={list.aboutOf(thread)} isChosen={thread.thread_id === chosen} />
          )}
        />
      )}
    </aside>
  );
}

/** Returns the chosen thread if the filter by status has removed it from the list, because its status has changed. */
function useFilteredOutThread(
  list: ThreadList,
  chosen: string | undefined,
  status: ApiThreadStatus | "",
): ThreadRow | null {
  const [left, setLeft] = useState<ThreadRow | null>(null);
  const seen = useRef(false);
  useEffect(() => {
    setLeft(null);
    seen.current = false;
  }, [chosen, status]);
  useEffect(() => {
    if (chosen === undefined || status === "") return;
    const isThere = list.has(chosen);
    if (isThere) setLeft(null);
    else if (seen.current)
      getThread(chosen).then(
        (found) => setLeft(found.status === status ? null : found),
        () => setLeft(null),
      );
    seen.current ||= isThere;
  }, [list.version.value, chosen, status]);
  return left;
}

async function jump(id: string): Promise<void> {
  const found = await getThread(id).catch(() => undefined);
  if (found !== undefined) navigate(["threads", found.thread_id]);
}

interface RowProps {
  readonly thread: ThreadRow;
  readonly about: string;
  readonly isChosen: boolean;
}

/** A row of the list: the thread's title, description and status. */
function Row({ thread, about, isChosen }: RowProps) {
  const { thread_id: id, status, metadata, updated_at, error } = thread;
  const { graph_id, assistant_id: _, title: _title, name: _name, ...rest } = metadata;
  const graph = typeof graph_id === "string" ? graph_id : "no runs yet";
  const name = threadTitle(thread);
  const why = error === undefined ? "" : errorLine(error.error, error.message);
  const others = Object.entries(rest).map(([key, value]) => `${key}=${toOneLine(value, 24)}`);
  const how = [
    why === "" ? THREAD_STATUS_TEXTS[status] : `${THREAD_STATUS_TEXTS[status]}: ${why}`,
    ...(name === graph ? [] : [graph]),
    ...(about === "" ? [] : others),
  ];
  const { path, query } = currentLocation.value;
  // If the page of a run is open, `tab` names a tab of that page, not a tab of a thread's page.
  const tab = (path[2] === undefined && query.get("tab")) || "";
  return (
    <a
      class={`thread ${status}`}
      href={threadHref(id, isThreadTab(tab) ? tab : undefined)}
      aria-current={isChosen ? "true" : undefined}
      title={[about, why].filter((text) => text !== "").join("\n")}
    >
      <span class={`dot ${status}`} aria-hidden="true" />
      <span class="name">{name}</span>
      <span class="about">{about === "" ? <JoinedTexts texts={others} separator=" " /> : about}</span>
      <span class="what">
        <JoinedTexts texts={how} />
      </span>
      <code class="id">…{idSuffix(id)}</code>
      <Age since={updated_at} />
    </a>
  );
}
