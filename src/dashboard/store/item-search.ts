import { searchStoreItems } from "../api/client.ts";
import type { StoreItem } from "../api/records.ts";
import { searchTermsOf } from "../threads/thread-search-filter.ts";

/** The number of items on one page. */
const ITEMS_PER_PAGE = 50;
/** The largest number of items that are searched for words if the server has no vector index. */
const MAX_SCANNED = 500;
const SCAN_PAGE = 100;

export interface FoundItems {
  readonly items: readonly StoreItem[];
  /** Whether more items follow on the next page. */
  readonly hasMore: boolean;
  /** A remark for the user about how the items were found; empty if there is none. */
  readonly note: string;
}

/**
 * Finds items in a namespace and in the namespaces below it. In `text`, `name=value` selects by a member of an item's
 * value. Other words are searched by meaning if the server has a vector index, and otherwise as text ({@link
 * findWords}).
 */
export async function searchStore(
  namespace_prefix: readonly string[],
  text: string,
  page: number,
): Promise<FoundItems> {
  const { words, pairs } = searchTermsOf(text);
  const search = { namespace_prefix, ...(Object.keys(pairs).length > 0 && { filter: pairs }) };
  if (words.length > 0) {
    const query = words.join(" ");
    // A server without a vector index may refuse the query. The words are then searched as text.
    const ranked = await searchStoreItems({ ...search, query, limit: ITEMS_PER_PAGE, offset: 0 }).catch(
      () => [],
    );
    if (ranked.some(({ score }) => typeof score === "number"))
      return { items: ranked, hasMore: false, note: "The most similar items come first." };
    return findWords(
      search,
      words.map((word) => word.toLowerCase()),
    );
  }
  const found = await searchStoreItems({
    ...search,
    limit: ITEMS_PER_PAGE + 1,
    offset: page * ITEMS_PER_PAGE,
  });
  return { items: found.slice(0, ITEMS_PER_PAGE), hasMore: found.length > ITEMS_PER_PAGE, note: "" };
}

/** Finds items whose key or value contains all words, among the {@link MAX_SCANNED} items that changed last. */
async function findWords(
  search: Pick<Parameters<typeof searchStoreItems>[0], "namespace_prefix" | "filter">,
  words: readonly string[],
): Promise<FoundItems> {
  const matches: StoreItem[] = [];
  for (let offset = 0; offset < MAX_SCANNED; offset += SCAN_PAGE) {
    // oxlint-disable-next-line no-await-in-loop -- each page is read only if the one before was full
    const found = await searchStoreItems({ ...search, limit: SCAN_PAGE, offset });
    for (const item of found) {
      const content = `${item.key} ${JSON.stringify(item.value)}`.toLowerCase();
      if (words.every((word) => content.includes(word))) matches.push(item);
    }
    if (found.length < SCAN_PAGE) return { items: matches, hasMore: false, note: "" };
  }
  const note = `Only the ${MAX_SCANNED} items that changed last were searched.`;
  return { items: matches, hasMore: false, note };
}
