import { diffJson } from "diff";
import { useMemo } from "preact/hooks";
import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/** The number of unchanged lines shown around a change. */
const CONTEXT_LINES = 2;
/**
 * The largest number of characters of both texts together that are compared. Comparing longer texts would block the
 * page.
 */
const MAX_DIFF_CHARACTERS = 400_000;
/**
 * The largest number of added and removed lines that are shown. The time to compare grows with the square of this
 * number: half a second for 2,000 lines, several seconds for 4,000.
 */
const MAX_CHANGED_LINES = 2_000;

interface Part {
  readonly kind: "same" | "added" | "removed" | "fold";
  readonly lines: readonly string[];
}

/**
 * A line-by-line diff of two JSON values. If two objects are too large to compare, their members are compared one by
 * one; those that are too large are named.
 */
export function JsonDiff({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const { parts, tooLarge } = useMemo(() => compare(before, after), [before, after]);
  const isSame = parts.every(({ kind }) => kind === "same" || kind === "fold");
  if (isSame && tooLarge === null) return <p class="dim">No difference.</p>;
  return (
    <>
      {!isSame && (
        <pre class="diff" tabIndex={0} aria-label="Difference">
          {parts.map(({ kind, lines }, i) =>
            kind === "fold" ? (
              <span key={i} class="fold">
                {`  … ${lines.length} unchanged lines\n`}
              </span>
            ) : kind === "same" ? (
              lines.map((line) => `  ${line}\n`).join("")
            ) : kind === "added" ? (
              <ins key={i}>{lines.map((line) => `+ ${line}\n`).join("")}</ins>
            ) : (
              <del key={i}>{lines.map((line) => `- ${line}\n`).join("")}</del>
            ),
          )}
        </pre>
      )}
      {tooLarge !== null && (
        <p class="dim">
          Too large to compare
          {tooLarge.length > 0 && ": "}
          {tooLarge.map((name, i) => (
            <span key={name}>
              {i > 0 && ", "}
              <code>{name}</code>
            </span>
          ))}
          .
        </p>
      )}
    </>
  );
}

interface Comparison {
  readonly parts: readonly Part[];
  /**
   * The names of the members that differ and are too large to compare; empty if the values have no members. Null if
   * everything was compared.
   */
  readonly tooLarge: readonly string[] | null;
}

function compare(before: unknown, after: unknown): Comparison {
  const [a, b] = [textOf(before), textOf(after)];
  if (a === b) return { parts: [], tooLarge: null };
  const parts = a.length + b.length > MAX_DIFF_CHARACTERS ? null : partsOf(a, b, MAX_CHANGED_LINES);
  if (parts !== null) return { parts, tooLarge: null };
  if (!isJsonRecord(before) || !isJsonRecord(after)) return { parts: [], tooLarge: [] };
  return compareMembers(before, after);
}

/** Compares the differing members of two objects, the smallest first, until the limits for both objects are reached. */
function compareMembers(before: JsonRecord, after: JsonRecord): Comparison {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((name) => ({ name, a: memberText(before, name), b: memberText(after, name) }))
    .filter(({ a, b }) => a !== b)
    .toSorted((one, other) => one.a.length + one.b.length - (other.a.length + other.b.length));
  const shown = new Map<string, readonly Part[]>();
  let [characters, lines] = [0, 0];
  for (const { name, a, b } of changed) {
    characters += a.length + b.length;
    const parts = characters > MAX_DIFF_CHARACTERS ? null : partsOf(a, b, MAX_CHANGED_LINES - lines);
    // The larger members are not tried: each attempt takes the time of a comparison.
    if (parts === null) break;
    for (const part of parts)
      if (part.kind === "added" || part.kind === "removed") lines += part.lines.length;
    shown.set(name, parts);
  }
  const names = changed.map(({ name }) => name).toSorted();
  return {
    parts: names.flatMap((name) => shown.get(name) ?? []),
    tooLarge: names.filter((name) => !shown.has(name)),
  };
}

/** Formats one member of an object as an object. The text is that of an empty object if there is no such member. */
const memberText = (object: JsonRecord, name: string): string =>
  textOf(Object.hasOwn(object, name) ? { [name]: object[name] } : {});

/** Compares two texts. Returns null if more than `most` lines were added and removed. */
function partsOf(a: string, b: string, most: number): readonly Part[] | null {
  // `diffJson` ignores a comma at the end of a line, which a line gets when a member is added after it.
  const changes = diffJson(a, b, { maxEditLength: most });
  if (changes === undefined) return null;
  return changes.flatMap(({ value, added, removed }, i): readonly Part[] => {
    const lines = value.replace(/\n$/, "").split("\n");
    if (added) return [{ kind: "added", lines }];
    if (removed) return [{ kind: "removed", lines }];
    const head = i === 0 ? 0 : CONTEXT_LINES;
    const tail = i === changes.length - 1 ? 0 : CONTEXT_LINES;
    if (lines.length <= head + tail + 1) return [{ kind: "same", lines }];
    const all: readonly Part[] = [
      { kind: "same", lines: lines.slice(0, head) },
      { kind: "fold", lines: lines.slice(head, lines.length - tail) },
      { kind: "same", lines: tail === 0 ? [] : lines.slice(-tail) },
    ];
    return all.filter((part) => part.lines.length > 0);
  });
}

/** Formats a value as JSON with sorted keys, so that the order of keys is not shown as a difference. */
function textOf(value: unknown): string {
  const sorted = (_: string, inner: unknown): unknown =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner;
  return `${JSON.stringify(value, sorted, 2) ?? ""}\n`;
}
