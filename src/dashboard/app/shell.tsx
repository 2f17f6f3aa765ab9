import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { GraphsPage } from "../graphs/page.tsx";
import { SystemPage } from "../system/page.tsx";
import { InboxPage } from "../inbox/page.tsx";
import { RunsPage } from "../all-runs/page.tsx";
import { AssistantsPage } from "../assistants/page.tsx";
import { CronsPage } from "../crons/page.tsx";
import { RunPage } from "../run/page.tsx";
import { NewThreadPage } from "../threads/new-thread-page.tsx";
import { StartPage } from "../threads/start-page.tsx";
import { ThreadListPanel } from "../threads/thread-list-panel.tsx";
import { StorePage } from "../store/page.tsx";
import { ThreadPage } from "../threads/thread-page.tsx";
import { isThreadTab } from "../threads/thread-tabs.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { ApiKeyDialog } from "./api-key-dialog.tsx";
import { isUuid, currentLocation, hrefOf } from "./page-location.ts";
import { ErrorBoundary } from "../components/error-boundary.tsx";
import { responseCount, isKeyExpired } from "../requests.ts";
import { isKeyMissing, currentNotice, dismissErrorNoticeIf, isUnreachableError } from "./notices.ts";
import { SignedInUser } from "./signed-in-user.tsx";
import { KeyboardShortcuts } from "./keyboard-shortcuts.tsx";
import { SiteHeader } from "./site-header.tsx";
import { type DashboardPageName, DASHBOARD_PAGES } from "./dashboard-pages.ts";

/** The frame of the dashboard: the header with the navigation, and the content of the current page. */
export function Shell() {
  // Counts the API keys that were entered because one was missing. Each gives the content a new Preact key, so that it
  // is created anew and sends its requests again.
  const entered = useSignal(0);
  /**
   * Counts the API keys that replaced an expired one. The content is not created anew, so that it keeps the user's
   * input.
   */
  const replaced = useSignal(0);
  const { path } = currentLocation.value;
  const [place = "threads", id] = path;
  const isList = place === "threads" || place === "new";
  useEffect(() => {
    const title = DASHBOARD_PAGES.find(({ name }) => name === place)?.title ?? "New thread";
    document.title = `${id === undefined ? title : `${id.slice(-8)} · ${title}`} · Heddle`;
  }, [place, id]);
  // An error is only shown on the page on which it occurred.
  const page = path.join("/");
  useEffect(() => () => dismissErrorNoticeIf(() => true), [page]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <SiteHeader
        current="Dashboard"
        home={hrefOf([])}
        buttons={
          <>
            {!isKeyMissing.value && <SignedInUser key={`${entered.value} ${replaced.value}`} />}
            <KeyboardShortcuts />
          </>
        }
      >
        <nav aria-label="Main">
          {DASHBOARD_PAGES.map(({ name, title }) => (
            <a key={name} href={hrefOf([name])} aria-current={name === place ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Notice />
      </SiteHeader>
      <div
        key={entered.value}
        class={`body ${isList ? "split" : ""} ${id !== undefined || place === "new" ? "deep" : ""}`}
      >
        {!isKeyMissing.value && (
          <>
            {isList && (
              <ErrorBoundary name="The list of threads">
                <ThreadListPanel chosen={id} />
              </ErrorBoundary>
            )}
            <main id="main" tabIndex={-1}>
              <ErrorBoundary name="This page" key={path.join("/")}>
                <Content />
              </ErrorBoundary>
            </main>
          </>
        )}
      </div>
      {isKeyMissing.value && (
        <ApiKeyDialog
          isExpired={false}
          onEntered={() => {
            isKeyMissing.value = false;
            entered.value++;
          }}
        />
      )}
      {isKeyExpired.value && !isKeyMissing.value && (
        <ApiKeyDialog isExpired onEntered={() => replaced.value++} />
      )}
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

function Content() {
  const { path, query } = currentLocation.value;
  const [place = "threads", ...rest] = path;
  if (place === "new") return <NewThreadPage graph={query.get("graph")} />;
  const page = DASHBOARD_PAGES.find(({ name }) => name === place);
  const content = page === undefined ? null : CONTENTS[page.name](rest, query);
  return (
    content ?? (
      <EmptyState title="Page not found">
        <a href={hrefOf([])}>Open threads</a>
      </EmptyState>
    )
  );
}

/**
 * For each page, a function that returns its content, or null for an address that does not exist. `rest`: the part of
 * the path after the page's name.
 */
const CONTENTS: Readonly<
  Record<DashboardPageName, (rest: readonly string[], query: URLSearchParams) => JSX.Element | null>
> = {
  threads: threadsContent,
  inbox: () => <InboxPage />,
  runs: ([id], query) => (id === undefined ? <RunsPage query={query} /> : null),
  graphs: ([id]) => <GraphsPage chosen={id} />,
  assistants: ([id], query) => <AssistantsPage chosen={id} query={query} />,
  crons: (_, query) => <CronsPage query={query} />,
  store: (_, query) => <StorePage query={query} />,
  system: () => <SystemPage />,
};

function threadsContent(
  [id, what, run, ...more]: readonly string[],
  query: URLSearchParams,
): JSX.Element | null {
  if (id === undefined) return <StartPage />;
  if (!isUuid(id) || more.length > 0) return null;
  if (run !== undefined)
    return what === "runs" && isUuid(run) ? <RunPage key={`${id} ${run}`} thread={id} run={run} /> : null;
  const tab = query.get("tab") ?? "talk";
  return isThreadTab(tab) ? <ThreadPage key={id} id={id} tab={tab} /> : null;
}

/** Milliseconds after which a notice is removed. One with a link stays longer, so that the user can follow the link. */
const NOTICE_MS = 3_000;
const NOTICE_WITH_LINK_MS = 10_000;

/** Shows the current notice. It is removed after a few seconds, unless it is an error or lasting. */
function Notice() {
  const shown = currentNotice.value;
  useEffect(() => {
    if (shown === null || shown.bad || shown.isLasting === true) return undefined;
    const ms = shown.link === undefined ? NOTICE_MS : NOTICE_WITH_LINK_MS;
    const timer = setTimeout(() => (currentNotice.value = null), ms);
    return () => clearTimeout(timer);
  }, [shown]);
  // The notice that the server cannot be reached is removed three seconds after the server has responded again.
  useEffect(() => {
    if (shown === null || !isUnreachableError(shown.cause)) return undefined;
    const before = responseCount.peek();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = responseCount.subscribe((count) => {
      if (count > before) timer ??= setTimeout(() => dismissErrorNoticeIf(isUnreachableError), 3_000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [shown]);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown !== null && (
        <div class={`notice ${shown.bad ? "bad" : ""}`}>
          <span>
            {shown.text}
            {shown.link !== undefined && (
              <>
                {" "}
                <a href={shown.link.href}>{shown.link.text}</a>
              </>
            )}
          </span>
          <button
            type="button"
            class="quiet"
            aria-label="Dismiss"
            onClick={() => (currentNotice.value = null)}
          >
            ✕
          </button>
        </div>
      )}
    </div>
  );
}
