import { useState } from "preact/hooks";
import type { StoreItem } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { hrefOf, navigate, pageNumberOf } from "../app/page-location.ts";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { Age, formatTimeUntil } from "../components/age.tsx";
import { useResource } from "../components/use-resource.ts";
import { toOneLine } from "../components/one-line-text.ts";
import { StoreItemDialog } from "./store-item-dialog.tsx";
import { searchStore } from "./item-search.ts";
import { NamespaceTree } from "./namespace-tree.tsx";

/** The store: its namespaces as a tree, and the items in the chosen namespace and in those below it. */
export function StorePage({ query }: { readonly query: URLSearchParams }) {
  const ns = query.get("ns") ?? "";
  const chosen = ns === "" ? [] : ns.split(".");
  const text = query.get("q") ?? "";
  const page = pageNumberOf(query);
  const [version, setVersion] = useState(0);
  /** The item in the dialog; null for a new item; undefined if the dialog is closed. */
  const [opened, setOpened] = useState<StoreItem | null | undefined>();
  const shown = JSON.stringify([ns, text, page]);
  const read = useResource(
    async () => ({ shown, version, ...(await searchStore(chosen, text, page)) }),
    [ns, text, page, version],
  );
  // The items of the previous namespace, search or page are not shown while those of the current one are read.
  const found = read.value?.shown === shown ? read : { ...read, value: undefined };
  // After a change, the list still has the former items until it is read again. An item that is opened meanwhile is shown then: in a dialog
  // with the former item, one's own change would count as that of somebody else.
  const isOutdated = found.value !== undefined && found.value.version !== version && found.error === null;
  const current = ({ namespace, key }: StoreItem): StoreItem | undefined =>
    found.value?.items.find((one) => one.key === key && one.namespace.join(".") === namespace.join("."));
  const at = (change: { readonly q?: string; readonly page?: number }) => ({
    ns,
    q: text,
    page: null,
    ...change,
  });
  return (
    <article class="page sided store">
      <aside class="pad" aria-label="Namespaces">
        <h1>Store</h1>
        <a href={hrefOf(["store"])} aria-current={ns === "" ? "true" : undefined}>
          All namespaces
        </a>
        <NamespaceTree prefix={[]} chosen={chosen} version={version} />
      </aside>
      <div class="pad main">
        <form class="bar" role="search" onSubmit={(event) => event.preventDefault()}>
          <input
            key={ns}
            type="search"
            class="space"
            aria-label="Search items: text or field=value"
            placeholder="Search text or field=value"
            value={text}
            onChange={({ currentTarget }) => navigate(["store"], at({ q: currentTarget.value.trim() }))}
          />
          <button type="button" class="primary" onClick={() => setOpened(null)}>
            Create item
          </button>
        </form>
        <p class="dim" role="status">
          {found.value?.note}
        </p>
        {found.error !== null && <ErrorAlert text={found.error} onRetry={found.reload} />}
        {found.value === undefined ? (
          found.error === null && <Loading />
        ) : found.value.items.length === 0 ? (
          <Nothing isFiltered={text !== ""} isFirst={page === 0} ns={ns} text={text} />
        ) : (
          <ItemTable items={found.value.items} within={chosen} onOpen={setOpened} />
        )}
        <nav class="bar" aria-label="Pages of items">
          {page > 0 && found.value?.items.length !== 0 && (
            <a class="button" href={hrefOf(["store"], at({ page: page - 1 }))}>
              Previous
            </a>
          )}
          {found.value?.hasMore === true && (
            <a class="button" href={hrefOf(["store"], at({ page: page + 1 }))}>
              Next
            </a>
          )}
        </nav>
      </div>
      {opened !== undefined && (opened === null || !isOutdated) && (
        <StoreItemDialog
          key={opened === null ? "new" : `${opened.namespace.join(".")} ${opened.key}`}
          item={opened && (current(opened) ?? opened)}
          namespace={chosen}
          onChanged={(put) => {
            setVersion((before) => before + 1);
            if (put !== null && opened === null) navigate(["store"], { ns: put.join(".") });
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </article>
  );
}

interface NothingProps {
  readonly isFiltered: boolean;
  /** Whether the page is the first one, so that there are no items at all. */
  readonly isFirst: boolean;
  readonly ns: string;
  readonly text: string;
}

function Nothing({ isFiltered, isFirst, ns, text }: NothingProps) {
  if (!isFirst)
    return (
      <EmptyState title="No more items">
        <a href={hrefOf(["store"], { ns, q: text })}>First page</a>
      </EmptyState>
    );
  if (isFiltered)
    return (
      <EmptyState title="No matching items">
        <a href={hrefOf(["store"], { ns })}>Show all items</a>
      </EmptyState>
    );
  return (
    <EmptyState title={ns === "" ? "The store is empty" : "No items here"}>
      <p class="dim">
        The store is memory that all threads share: graphs write it with <code>ctx.store.put</code>, clients
        with <code>client.store.putItem</code>, and you with “Create item”.
      </p>
    </EmptyState>
  );
}

interface TableProps {
  readonly items: readonly StoreItem[];
  /** The namespace whose items are listed. A row shows only the rest of its item's namespace. */
  readonly within: readonly string[];
  readonly onOpen: (item: StoreItem) => void;
}

function ItemTable({ items, within, onOpen }: TableProps) {
  return (
    <table class="listing">
      <thead>
        <tr>
          <th>Key</th>
          <th>Namespace</th>
          <th>Value</th>
          <th>Changed</th>
          <th>Expires</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={JSON.stringify([...item.namespace, item.key])}>
            <td class="key">
              <button type="button" class="quiet link" onClick={() => onOpen(item)}>
                {/* A button with a blank text could not be seen. */}
                {item.key.trim() === "" ? JSON.stringify(item.key) : item.key}
              </button>
            </td>
            <td class="dim">
              {item.namespace.length > within.length && (
                <a href={hrefOf(["store"], { ns: item.namespace.join(".") })}>
                  {item.namespace.slice(within.length).join(" / ")}
                </a>
              )}
            </td>
            <td class="value">{toOneLine(item.value, 200)}</td>
            <td class="when">
              <Age since={item.updated_at} isAgo />
            </td>
            <td class="when dim">
              {item.expires_at !== undefined && formatTimeUntil(item.expires_at, nowTruncatedToSeconds.value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
