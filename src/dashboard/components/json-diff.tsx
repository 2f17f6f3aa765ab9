import { diffJson } from "diff";
import { useMemo } from "preact/hooks";

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

/** A line-by-line diff of two JSON values. */
export function JsonDiff({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const parts = useMemo(() => partsOf(before, after), [before, after]);
  if (parts === null) return <p class="dim">Too large to compare.</p>;
  if (parts.every(({ kind }) => kind === "same" || kind === "fold")) return <p class="dim">No difference.</p>;
  return (
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
  );
}

function partsOf(before: unknown, after: unknown): readonly Part[] | null {
  const [a, b] = [textOf(before), textOf(after)];
  if (a.length + b.length > MAX_DIFF_CHARACTERS) return null;
  // `diffJson` ignores a comma at the end of a line, which a line gets when a member is added after it.
  const changes = diffJson(a, b, { maxEditLength: MAX_CHANGED_LINES });
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
