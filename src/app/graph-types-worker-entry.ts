import { GraphTypesWorker } from "../graph-types/graph-types-worker.ts";
import type { GraphTypesMessage, GraphTypesRequest } from "../graph-types/worker-messages.ts";
import { connectToParent } from "../platform/worker-thread.ts";

// The entry point of the worker thread that reads the types of graphs.
const parent = connectToParent<GraphTypesMessage, GraphTypesRequest>();
const worker = new GraphTypesWorker((message) => parent.post(message));
parent.onMessage((graph) => worker.read(graph));
