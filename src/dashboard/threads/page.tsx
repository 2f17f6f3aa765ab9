import { useEffect, useMemo } from "preact/hooks";
import type { Run } from "../api/records.ts";
import { route, to, toThread } from "../app/route.ts";
import { EventsTab } from "../runs/events.tsx";
import { Empty, Failure } from "../parts/empty.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { ThreadWatch } from "../live/thread-watch.ts";
import { GraphTab } from "../graphs/live.tsx";
import { ThreadHead } from "./head.tsx";
import { HistoryTab } from "./history.tsx";
import { RunsTab } from "./runs.tsx";
import { ChatTab } from "./talk.tsx";

/** The page of one thread, live. */
export function ThreadPage({ id }: { readonly id: string }) {
  const watch = useMemo(() => new ThreadWatch(id), [id]);
  useEffect(() => () => watch.close(), [watch]);
  const record = watch.record.value;
  const error = watch.error.value;
  const tab = route.value.query.get("tab") ?? "talk";
  if (watch.isMissing.value)
    return (
      <Empty title="There is no such thread.">
        <p class="dim">{error}</p>
        <a href={to([])}>To the threads</a>
      </Empty>
    );
  if (record === null)
    return error === null ? (
      <p class="dim pad" aria-busy="true">
        Reading…
      </p>
    ) : (
      <Failure text={error} onRetry={() => watch.refresh()} />
    );
  const open = (runs: readonly Run[]) =>
    runs.filter(({ status }) => status === "pending" || status === "running").length;
  return (
    <article class="page">
      <ThreadHead watch={watch} record={record} />
      <Tabs
        label="Views of the thread"
        current={tab}
        tabs={[
          { id: "talk", title: "Now", href: toThread(id) },
          { id: "runs", title: "Runs", href: toThread(id, "runs"), count: open(watch.runs.value) },
          { id: "history", title: "History", href: toThread(id, "history") },
          { id: "graph", title: "Graph", href: toThread(id, "graph") },
          { id: "events", title: "Events", href: toThread(id, "events") },
        ]}
      />
      {error !== null && <Failure text={error} onRetry={() => watch.refresh()} />}
      <Side tab={tab} watch={watch} />
    </article>
  );
}

function Side({ tab, watch }: { readonly tab: string; readonly watch: ThreadWatch }) {
  switch (tab) {
    case "runs":
      return <RunsTab watch={watch} />;
    case "history":
      return <HistoryTab watch={watch} />;
    case "graph":
      return <GraphTab watch={watch} />;
    case "events": {
      void watch.changes.seen;
      const events = [...watch.traces.values()].flatMap((trace) => trace.events);
      return (
        <EventsTab
          events={events}
          note="Events since this page was opened. A run's page shows all of its events."
        />
      );
    }
    default:
      return <ChatTab watch={watch} />;
  }
}
