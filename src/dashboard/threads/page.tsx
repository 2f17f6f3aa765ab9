import { useEffect, useMemo } from "preact/hooks";
import type { Run } from "../api/records.ts";
import { currentLocation, hrefOf, threadHref } from "../app/page-location.ts";
import { EventsTab } from "../runs/events-tab.tsx";
import { EmptyState, LoadFailure } from "../components/empty-state.tsx";
import { Tabs } from "../components/tabs.tsx";
import { ThreadSubscription } from "../live/thread-subscription.ts";
import { GraphTab } from "../graphs/graph-tab.tsx";
import { ThreadHeader } from "./thread-header.tsx";
import { HistoryTab } from "./history-tab.tsx";
import { RunsTab } from "./runs-tab.tsx";
import { ChatTab } from "./chat-tab.tsx";

/** The page of one thread. It shows each change of the thread at once. */
export function ThreadPage({ id }: { readonly id: string }) {
  const watch = useMemo(() => new ThreadSubscription(id), [id]);
  useEffect(() => () => watch.close(), [watch]);
  const record = watch.record.value;
  const error = watch.error.value;
  const tab = currentLocation.value.query.get("tab") ?? "talk";
  if (watch.isMissing.value)
    return (
      <EmptyState title="There is no such thread.">
        <p class="dim">{error}</p>
        <a href={hrefOf([])}>To the threads</a>
      </EmptyState>
    );
  if (record === null)
    return error === null ? (
      <p class="dim pad" aria-busy="true">
        Reading…
      </p>
    ) : (
      <LoadFailure text={error} onRetry={() => watch.refresh()} />
    );
  const open = (runs: readonly Run[]) =>
    runs.filter(({ status }) => status === "pending" || status === "running").length;
  return (
    <article class="page">
      <ThreadHeader watch={watch} record={record} />
      <Tabs
        label="Views of the thread"
        current={tab}
        tabs={[
          { id: "talk", title: "Now", href: threadHref(id) },
          { id: "runs", title: "Runs", href: threadHref(id, "runs"), count: open(watch.runs.value) },
          { id: "history", title: "History", href: threadHref(id, "history") },
          { id: "graph", title: "Graph", href: threadHref(id, "graph") },
          { id: "events", title: "Events", href: threadHref(id, "events") },
        ]}
      />
      {error !== null && <LoadFailure text={error} onRetry={() => watch.refresh()} />}
      <Side tab={tab} watch={watch} />
    </article>
  );
}

function Side({ tab, watch }: { readonly tab: string; readonly watch: ThreadSubscription }) {
  switch (tab) {
    case "runs":
      return <RunsTab watch={watch} />;
    case "history":
      return <HistoryTab watch={watch} />;
    case "graph":
      return <GraphTab watch={watch} />;
    case "events": {
      void watch.changes.count;
      return (
        <EventsTab
          events={watch.log.events}
          note={
            <>
              Events since this page was opened. The page of a <a href={threadHref(watch.id, "runs")}>run</a>{" "}
              shows its events from the first one on.
            </>
          }
        />
      );
    }
    default:
      return <ChatTab watch={watch} />;
  }
}
