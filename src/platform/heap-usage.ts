import { getHeapStatistics } from "node:v8";
import type { ReadHeapUsage } from "../ports/heap-usage.ts";

/** Reads the heap of this thread from V8. `used` includes the memory of buffers, which is outside the heap. */
export const readSystemHeapUsage: ReadHeapUsage = () => {
  const { used_heap_size, external_memory, heap_size_limit } = getHeapStatistics();
  return { used: used_heap_size + external_memory, limit: heap_size_limit };
};
