import type { ThreadListFilter, ApiThreadStatus, JsonRecord } from "../api/records.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ThreadSearchTerms {
  readonly text: string;
  readonly status: ApiThreadStatus | "";
  readonly graph: string;
}

/** Splits a text at its spaces, except within double quotes. */
const wordsOf = (text: string): readonly string[] => text.match(/(?:"[^"]*"|\S)+/g) ?? [];

/** Returns the words of a search text that are neither a complete id nor a pair (`name=value` or `name:value`). */
export const freeWords = (text: string): readonly string[] =>
  searchTermsOf(text).words.filter((word) => !UUID.test(word));

/** Splits a search text into pairs (`name=value` or `name:value`) and other words. */
export function searchTermsOf(text: string): {
  readonly words: readonly string[];
  readonly pairs: JsonRecord;
} {
  const words = wordsOf(text);
  return {
    words: words.filter((word) => pairOf(word) === null),
    pairs: Object.fromEntries(words.map(pairOf).filter((pair) => pair !== null)),
  };
}

/**
 * Converts a search to a filter of the API: complete ids, and pairs (`name=value` or `name:value`) that the metadata
 * must contain. Other words are ignored.
 */
export function threadFilterOf({ text, status, graph }: ThreadSearchTerms): ThreadListFilter {
  const { words, pairs } = searchTermsOf(text);
  const ids = words.filter((word) => UUID.test(word)).map((id) => id.toLowerCase());
  const metadata = { ...(graph !== "" && { graph_id: graph }), ...pairs };
  return {
    ...(status !== "" && { status }),
    ...(ids.length > 0 && { ids }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

function pairOf(word: string): readonly [string, unknown] | null {
  const at = word.search(/[=:]/);
  return at > 0 && at < word.length - 1 ? [word.slice(0, at), valueOf(word.slice(at + 1))] : null;
}

/** Parses numbers, `true`, `false`, `null` and quoted strings as JSON. Any other text is returned as a string. */
function valueOf(text: string): unknown {
  if (!/^(-?\d+(\.\d+)?|true|false|null|".*")$/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
