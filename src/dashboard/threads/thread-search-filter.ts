import type { ThreadListFilter, ApiThreadStatus } from "../api/records.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ThreadSearchTerms {
  readonly text: string;
  readonly status: ApiThreadStatus | "";
  readonly graph: string;
}

const wordsOf = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== "");

/** Returns the words of a search text that are neither a complete id nor `name=value`. */
export const freeWords = (text: string): readonly string[] =>
  wordsOf(text).filter((word) => !UUID.test(word) && pairOf(word) === null);

/** Parses the search text: an id, or `name=value` pairs of the metadata, separated by spaces. */
export function threadFilterOf({ text, status, graph }: ThreadSearchTerms): ThreadListFilter {
  const words = wordsOf(text);
  const ids = words.filter((word) => UUID.test(word)).map((id) => id.toLowerCase());
  const pairs = words.map(pairOf).filter((pair) => pair !== null);
  const metadata = Object.fromEntries([...(graph === "" ? [] : [["graph_id", graph] as const]), ...pairs]);
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

/** Parses numbers, booleans and the like as JSON values. */
function valueOf(text: string): unknown {
  if (!/^(-?\d+(\.\d+)?|true|false|null|".*")$/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
