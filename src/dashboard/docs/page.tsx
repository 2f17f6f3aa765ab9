import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { SiteHeader } from "../app/site-header.tsx";
import { ErrorAlert } from "../components/empty-state.tsx";
import { guideFragmentOf, guidePages, overviewPage } from "./guide-contents.ts";
import { GuidePageView } from "./guide-page.tsx";
import { operationsOf, type OpenApi } from "./openapi.ts";
import { apiFragmentOfTag, ApiReference } from "./api-reference.tsx";
import { SearchResults, splitSearchTerms } from "./search-results.tsx";

/** The guide and the API reference. */
export function DocsPage() {
  const fragment = useFragment();
  const { api, failure } = useApi();
  const [wanted, setWanted] = useState("");
  const [isMenuOpen, setMenuOpen] = useState(false);
  const words = splitSearchTerms(wanted);
  const isSearch = words.length > 0;
  const page = pageOf(fragment);
  const operations = api === undefined ? [] : operationsOf(api);
  useEffect(() => {
    setMenuOpen(false);
    setWanted("");
  }, [fragment]);
  useLayoutEffect(() => {
    const title = page === undefined ? "API reference" : guidePages.find(({ name }) => name === page)?.title;
    document.title = `${title ?? "Guide"} · Heddle`;
  }, [page]);
  useArrival(fragment, api !== undefined, isSearch);
  const leaveSearch = () => setWanted("");
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <SiteHeader current="Docs" home={`#${guideFragmentOf(overviewPage)}`} onHome={leaveSearch}>
        <span class="dim">{api?.info.version}</span>
        <button
          type="button"
          class="menu"
          aria-expanded={isMenuOpen}
          aria-controls="contents"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Contents
        </button>
        <input
          type="search"
          aria-label="Search the guide and the API"
          placeholder="Search: webhooks, POST /threads…"
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      </SiteHeader>
      <div class="docs">
        <div id="contents" class={isMenuOpen ? "open" : ""}>
          <nav aria-labelledby="guide-pages">
            <p id="guide-pages" class="dim">
              Guide
            </p>
            {guidePages.map((one) => (
              <a
                key={one.name}
                href={`#${guideFragmentOf(one)}`}
                aria-current={!isSearch && one.name === page ? "page" : undefined}
                onClick={leaveSearch}
              >
                {one.title}
              </a>
            ))}
          </nav>
          <nav aria-labelledby="api-groups">
            <p id="api-groups" class="dim">
              API
            </p>
            <a
              href="#api"
              aria-current={!isSearch && page === undefined ? "page" : undefined}
              onClick={leaveSearch}
            >
              API reference
            </a>
            {(api?.tags ?? []).map(({ name }) => (
              <a key={name} href={`#${apiFragmentOfTag(name)}`} onClick={leaveSearch}>
                {name}{" "}
                <span class="dim">
                  {operations.filter(({ operation }) => operation.tags.includes(name)).length}
                </span>
              </a>
            ))}
          </nav>
        </div>
        <main id="main" tabIndex={-1}>
          {failure !== undefined && (page === undefined || isSearch) && (
            <ErrorAlert text={`The description of the API could not be read. ${failure}`} />
          )}
          {isSearch ? (
            <SearchResults api={api} words={words} onFollow={leaveSearch} />
          ) : page !== undefined ? (
            <GuidePageView name={page} api={api} />
          ) : (
            api !== undefined && <ApiReference api={api} shown={fragment} />
          )}
        </main>
      </div>
    </>
  );
}

/** Returns the name of the guide's page in a URL fragment; undefined if the fragment belongs to the API reference. */
function pageOf(fragment: string): string | undefined {
  if (fragment === "") return overviewPage.name;
  const [place, name = ""] = fragment.split("/");
  return place === "guide" ? name : undefined;
}

const fragmentNow = (): string => {
  const fragment = location.hash.slice(1);
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
};

function useFragment(): string {
  const [fragment, setFragment] = useState(fragmentNow);
  useEffect(() => {
    const read = () => setFragment(fragmentNow());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return fragment;
}

/** Loads the OpenAPI description. Until then, and if it fails, only the guide is shown. */
function useApi(): { readonly api?: OpenApi; readonly failure?: string } {
  const [read, setRead] = useState<{ readonly api?: OpenApi; readonly failure?: string }>({});
  useEffect(() => {
    const load = async () => {
      const response = await fetch("openapi.json");
      if (!response.ok) throw new Error(`openapi.json: ${response.status}`);
      setRead({ api: (await response.json()) as OpenApi });
    };
    load().catch((cause: unknown) => setRead({ failure: String(cause) }));
  }, []);
  return read;
}

/**
 * Scrolls to the element that the URL fragment names, as soon as it is rendered. Also moves the focus there, unless the
 * page was just opened.
 */
function useArrival(fragment: string, isApiRead: boolean, isSearch: boolean): void {
  const arrived = useRef("");
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    // Search results replace the page. When the search is closed, the element is scrolled to again.
    if (isSearch) {
      if (arrived.current !== "") scrollTo(0, 0);
      arrived.current = "";
      return;
    }
    if (arrived.current === `#${fragment}`) return;
    const target = fragment === "" ? null : document.getElementById(fragment);
    if (target === null && pageOf(fragment) === undefined && !isApiRead) return;
    arrived.current = `#${fragment}`;
    const isSection = target !== null && target.tagName !== "H1";
    if (isSection) target.scrollIntoView();
    else if (!isFirst.current) scrollTo(0, 0);
    // If the user has just cleared the search field, the focus stays in it, so that the user can go on typing.
    if (!isFirst.current && !(document.activeElement instanceof HTMLInputElement))
      focus(target ?? document.querySelector("#main"));
    isFirst.current = false;
  });
}

function focus(target: Element | null): void {
  const focused = target?.querySelector(":scope > summary") ?? target;
  if (!(focused instanceof HTMLElement)) return;
  if (focused.tabIndex < 0) focused.tabIndex = -1;
  focused.focus({ preventScroll: true });
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}
