import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

type Given = "getScrollElement" | "observeElementRect" | "observeElementOffset" | "scrollToFn" | "onChange";
type RowOptions = Omit<VirtualizerOptions<HTMLElement, Element>, Given>;

/**
 * Returns a virtualizer, which tells the visible rows of a long list. The component is rendered again when they change.
 * `scroll`: the element that scrolls.
 */
export function useVirtualizer(
  scroll: { readonly current: HTMLElement | null },
  rows: RowOptions,
): Virtualizer<HTMLElement, Element> {
  const [, render] = useState(0);
  const options = {
    ...rows,
    getScrollElement: () => scroll.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => render((drawn) => drawn + 1),
  };
  const virtual = useRef<Virtualizer<HTMLElement, Element> | null>(null);
  virtual.current ??= new Virtualizer(options);
  const { current } = virtual;
  current.setOptions(options);
  useLayoutEffect(() => current._didMount(), []);
  useLayoutEffect(() => current._willUpdate());
  return current;
}
