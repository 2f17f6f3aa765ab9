import { parentPort, Worker, workerData } from "node:worker_threads";
import type { WorkerThread } from "../ports/worker-thread.ts";

/**
 * Starts a worker thread that runs `file`. The thread reads `data` with {@link workerStartData}.
 * @param heapMb the heap limit in MiB: a thread that needs more is ended. Default: the limit of the process
 */
export function startWorker<Out, In>(file: URL, data: unknown, heapMb?: number): WorkerThread<Out, In> {
  const isSource = file.pathname.endsWith(".ts");
  const worker = new Worker(isSource ? loadSource(file) : file, {
    workerData: data,
    eval: isSource,
    ...(heapMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: heapMb } }),
  });
  let error: Error | undefined;
  worker.on("error", (thrown) => (error = thrown));
  return {
    post: (message) => worker.postMessage(message, []),
    onMessage: (take) => void worker.on("message", take),
    onEnd: (listener) =>
      void worker.on("exit", (code) => listener(error === undefined ? `exit code ${code}` : error.message)),
    terminate: async () => void (await worker.terminate()),
  };
}

/** A script that loads a TypeScript source file. On Node 20, `--import tsx` does not reach a worker thread. */
const loadSource = ({ href }: URL) =>
  `import("tsx/esm/api").then(({ register }) => { register(); return import(${JSON.stringify(href)}); });`;

/** The connection of a worker thread to its parent. */
export interface ParentThread<Out, In> {
  post(message: Out): void;
  onMessage(take: (message: In) => void): void;
}

/** Connects to the parent thread. @throws TypeError outside a worker thread */
export function connectToParent<Out, In>(): ParentThread<Out, In> {
  const port = parentPort;
  if (port === null) throw new TypeError("This is no worker thread");
  return {
    post: (message) => port.postMessage(message),
    onMessage: (take) => void port.on("message", take),
  };
}

/** The data with which this worker thread was started. */
export const workerStartData = (): unknown => workerData;
