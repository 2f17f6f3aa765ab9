import { parentPort, Worker, workerData } from "node:worker_threads";
import type { WorkerThread } from "../ports/worker-thread.ts";

/** Starts a worker thread that runs `file`. The thread reads `data` with {@link workerStartData}. */
export function startWorker<Out, In>(file: URL, data: unknown): WorkerThread<Out, In> {
  const worker = new Worker(file, {
    workerData: data,
    // When run from sources, Node needs a loader for TypeScript.
    ...(file.pathname.endsWith(".ts") && { execArgv: ["--import", "tsx"] }),
  });
  let error: Error | undefined;
  worker.on("error", (thrown) => (error = thrown));
  return {
    post: (message) => worker.postMessage(message, []),
    onMessage: (take) => void worker.on("message", take),
    onEnd: (told) =>
      void worker.on("exit", (code) => told(error === undefined ? `exit code ${code}` : error.message)),
    terminate: async () => void (await worker.terminate()),
  };
}

/** The connection to the parent, used in the worker thread. */
export interface ParentThread<Out, In> {
  post(message: Out): void;
  onMessage(take: (message: In) => void): void;
}

/** @throws TypeError when this is no worker thread */
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
