import type { ProcessMetrics, ReadProcessMetrics } from "../ports/process-metrics.ts";
import { counter, type MetricFamily, gauge } from "./metric-family.ts";
import type { EventLoopLag } from "./event-loop-lag.ts";

/** Seconds: upper bounds of the buckets of event loop lag. */
const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function processMetricFamilies(
  read: ReadProcessMetrics,
  { look }: Pick<EventLoopLag, "look">,
): readonly MetricFamily[] {
  const of = (figure: (figures: ProcessMetrics) => number) => () => figure(read());
  const cpu = of(({ cpu }) => cpu.user + cpu.system);
  const heap = of(({ memory }) => memory.heapTotal);
  const used = of(({ memory }) => memory.heapUsed);
  const external = of(({ memory }) => memory.external);
  return [
    // Metrics that are common to Prometheus clients have their usual names.
    counter(
      "process_cpu_user_seconds_total",
      "Processor time in user code",
      of(({ cpu }) => cpu.user),
    ),
    counter(
      "process_cpu_system_seconds_total",
      "Processor time in the system",
      of(({ cpu }) => cpu.system),
    ),
    counter("process_cpu_seconds_total", "Processor time", cpu),
    gauge(
      "process_resident_memory_bytes",
      "Memory that the process takes",
      of(({ memory }) => memory.resident),
    ),
    gauge(
      "process_start_time_seconds",
      "When the process began, since 1970",
      of(({ started }) => started),
    ),
    gauge("nodejs_heap_size_total_bytes", "Memory of the JavaScript heap", heap),
    gauge("nodejs_heap_size_used_bytes", "Memory of it that is in use", used),
    gauge("nodejs_external_memory_bytes", "Memory of buffers and the like", external),
    counter(
      "heddle_event_loop_active_seconds_total",
      "Time that the event loop was at work",
      of(({ loop }) => loop.active),
    ),
    counter(
      "heddle_event_loop_idle_seconds_total",
      "Time that the event loop had nothing to do",
      of(({ loop }) => loop.idle),
    ),
    {
      name: "heddle_event_loop_lag_seconds",
      help: "How late a timer fires; measured ten times a second while somebody asks",
      type: "histogram",
      buckets: BUCKETS,
      look,
    },
  ];
}
