import { useEffect, useMemo } from "preact/hooks";
import { dismissErrorNoticeIf, isConflictError } from "../app/notices.ts";
import { hrefOf, threadHref } from "../app/page-location.ts";
import { EventsTab } from "../run/events-tab.tsx";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { Tabs } from "../components/tabs.tsx";
import { ThreadSubscription } from "../live/thread-subscription.ts";
import { GraphTab } from "../graphs/graph-tab.tsx";
import { ThreadHeader } from "./thread-header.tsx";
import { HistoryTab } from "./history-tab.tsx";
import { RunsTab } from "./runs-tab.tsx";
import { CurrentTab } from "./current-tab.tsx";
import { type ThreadTab, THREAD_TABS } from "./thread-tabs.ts";

interface ThreadPageProps {
  readonly id: string;
  readonly tab: ThreadTab;
}

/** The page of a thread, which is updated as soon as the thread changes. */
export function ThreadPage({ id, tab }: ThreadPageProps) {
  const watch = useMemo(() => new ThreadSubscription(id), [id]);
  useEffect(() => () => watch.close(), [watch]);
  const record = watch.record.value;
  const isFree = record?.status !== "busy";
  useEffect(() => {
    if (isFree) dismissErrorNoticeIf(isConflictError);
  }, [isFree]);
  const error = watch.error.value;
  if (watch.isMissing.value)
    return (
      <EmptyState title="Thread not found">
        <p class="dim">{error}</p>
        <a href={hrefOf([])}>All threads</a>
      </EmptyState>
    );
  if (record === null)
    return error === null ? (
      <Loading isPadded />
    ) : (
      <ErrorAlert text={error} onRetry={() => watch.refresh()} />
    );
  const open = watch.queued + (watch.active === undefined ? 0 : 1);
  return (
    <article class="page">
      <ThreadHeader watch={watch} record={record} />
      <Tabs
        label="Views of the thread"
        current={tab}
        tabs={THREAD_TABS.map((one) => ({
          ...one,
          href: threadHref(id, one.id === "talk" ? undefined : one.id),
          ...(one.id === "runs" && { count: open }),
        }))}
      />
      {error !== null && <ErrorAlert text={error} onRetry={() => watch.refresh()} />}
      <Side tab={tab} watch={watch} />
    </article>
  );
}

function Side({ tab, watch }: { readonly tab: ThreadTab; readonly watch: ThreadSubscription }) {
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
    case "talk":
      return <CurrentTab watch={watch} />;
  }
}
