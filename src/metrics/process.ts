import type { ProcessFigures, ReadProcess } from "../ports/process-figures.ts";
import type { Family } from "./family.ts";
import type { Lag } from "./lag.ts";

/** Seconds. */
const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

type Row = readonly [
  name: string,
  help: string,
  type: "counter" | "gauge",
  of: (figures: ProcessFigures) => number,
];

/** Where clients of Prometheus have a name for it in all languages, it has that name here. */
const rows: readonly Row[] = [
  ["process_cpu_user_seconds_total", "Processor time in user code", "counter", ({ cpu }) => cpu.user],
  ["process_cpu_system_seconds_total", "Processor time in the system", "counter", ({ cpu }) => cpu.system],
  ["process_cpu_seconds_total", "Processor time", "counter", ({ cpu }) => cpu.user + cpu.system],
  [
    "process_resident_memory_bytes",
    "Memory that the process takes",
    "gauge",
    ({ memory }) => memory.resident,
  ],
  ["process_start_time_seconds", "When the process began, since 1970", "gauge", ({ started }) => started],
  [
    "nodejs_heap_size_total_bytes",
    "Memory of the JavaScript heap",
    "gauge",
    ({ memory }) => memory.heapTotal,
  ],
  ["nodejs_heap_size_used_bytes", "Memory of it that is in use", "gauge", ({ memory }) => memory.heapUsed],
  [
    "nodejs_external_memory_bytes",
    "Memory of buffers and the like",
    "gauge",
    ({ memory }) => memory.external,
  ],
  [
    "heddle_event_loop_active_seconds_total",
    "Time that the event loop was at work",
    "counter",
    ({ loop }) => loop.active,
  ],
  [
    "heddle_event_loop_idle_seconds_total",
    "Time that the event loop had nothing to do",
    "counter",
    ({ loop }) => loop.idle,
  ],
];

/** How the process is, and how late its event loop. */
export function processFamilies(read: ReadProcess, { look }: Pick<Lag, "look">): readonly Family[] {
  return [
    ...rows.map(([name, help, type, of]): Family => ({ name, help, type, read: () => of(read()) })),
    {
      name: "heddle_event_loop_lag_seconds",
      help: "How late a timer fires; measured ten times a second while somebody asks",
      type: "histogram",
      buckets: BUCKETS,
      look,
    },
  ];
}
