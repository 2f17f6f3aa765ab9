import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ThreadRow } from "../api/records.ts";
import { useVirtualizer } from "../components/use-virtualizer.ts";
import type { ThreadList } from "../live/thread-list.ts";

/** The height of a row, in pixels. */
const ROW_HEIGHT_PIXELS = 72;

interface RowsProps {
  readonly list: ThreadList;
  readonly row: (thread: ThreadRow) => ComponentChildren;
}

/** A virtual list: only the visible rows, and some before and after them, are rendered. */
export function VirtualThreadList({ list, row }: RowsProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const count = list.total.value ?? 0;
  void list.version.value;
  const current = useVirtualizer(scroll, { count, estimateSize: () => ROW_HEIGHT_PIXELS, overscan: 8 });
  const items = current.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => list.setVisible(first, last), [first, last]);
  return (
    <div
      class="rows"
      ref={scroll}
      tabIndex={0}
      role="list"
      aria-label={`${count} threads`}
      onKeyDown={(event) => walk(event, scroll.current)}
    >
      <div class="whole" role="presentation" style={{ height: `${current.getTotalSize()}px` }}>
        {items.map(({ index, start }) => {
          const thread = list.at(index);
          return (
            <div
              key={index}
              class="row"
              role="listitem"
              aria-setsize={count}
              aria-posinset={index + 1}
              style={{ transform: `translateY(${start}px)`, height: `${ROW_HEIGHT_PIXELS}px` }}
            >
              {thread === undefined ? <span class="thread blank" aria-busy="true" /> : row(thread)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Moves the focus to the next or the previous row when the user presses ↓ or ↑. */
function walk(event: KeyboardEvent, box: HTMLElement | null): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const rows = [...(box?.querySelectorAll<HTMLElement>("a.thread") ?? [])];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1);
  event.preventDefault();
  rows[next]?.focus();
}
