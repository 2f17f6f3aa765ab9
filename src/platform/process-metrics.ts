import type { ReadProcessMetrics } from "../ports/process-metrics.ts";

export const systemProcessMetrics: ReadProcessMetrics = () => {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  const { active, idle } = performance.eventLoopUtilization();
  return {
    pid: process.pid,
    cpu: { user: user / 1e6, system: system / 1e6 },
    memory: { resident: rss, heapUsed, heapTotal, external },
    loop: { active: active / 1e3, idle: idle / 1e3 },
    started: performance.timeOrigin / 1e3,
  };
};
