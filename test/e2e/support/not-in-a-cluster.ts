import { beforeEach, type TestContext } from "vitest";

/** A file of the suite, parts of the full names of tests (absent: all of the file), and why they cannot be asked of a node. */
type Exception = readonly [file: string, reason: string, ...parts: readonly string[]];

const OWN_LIMITS = "the limits of runs in progress and of queues hold for each shard";
const OWN_DIRECTORY = "looks into the data directory of a server that is one process";
const OWN_LOG = "each process that handles a request logs it";
const LABELLED = "figures have the label of their shard; test/e2e/shard-processes.test.ts has them";
const OWN_CLOSE =
  "a node that stops waits for its own runs alone; test/e2e/cluster-nodes.test.ts stops nodes";
const OWN_START =
  "one holder has the leases of all nodes here, so that a second start takes them from the first";
const ONE_LOOP = "blocks the event loop, which the three nodes of these tests share";
const ONE_ORDER = "ids made in the same millisecond are in order only within a process";
const ONE_TIMER = "takes the timer of a server that is one process";
const LATE =
  "does not wait until a request has arrived, and a run without a thread is gone when a forwarded one does";
const NODE_TRANSPORT = "nodes share their ports, which Node's own server can from Node 22.12 on";

/** The tests that `npm run test:cluster` skips. */
const EXCEPTIONS: readonly Exception[] = [
  ["access", OWN_LOG, "what the server says of itself > requests are logged"],
  ["acknowledgements", ONE_LOOP],
  ["app", NODE_TRANSPORT, "a server > a transport that was asked for, over node"],
  ["app", OWN_START, "a server that cannot start"],
  ["definitions", "each process has a cache of its own", "cache: the update of a node"],
  ["delays", "a key is looked for in the shard of its request", "is refused for another request"],
  ["embedded", OWN_CLOSE, "when the app closes > runs drain"],
  ["equal-times", ONE_ORDER],
  [
    "health",
    OWN_CLOSE,
    "a server that stops is no longer ready",
    "a server that waits for its running nodes",
  ],
  ["load", OWN_LIMITS],
  ["mending", OWN_DIRECTORY],
  ["metrics", LABELLED],
  ["modes", ONE_TIMER, "stream modes, byte by byte, over uws > a run whose events have expired"],
  ["older-data", OWN_DIRECTORY],
  ["progress", OWN_DIRECTORY],
  ["restart", OWN_START, "cannot have one directory"],
  ["run-search", OWN_DIRECTORY, "runs that are deleted are gone"],
  ["stateless", LABELLED, "is nothing to complain of", "one has left before it had read all"],
  ["stateless", LATE, "is joined from the start, by both of its paths", "takes up background runs"],
  ["stops", OWN_CLOSE],
  ["store", "the node's 50 ms are too short for a log in PostgreSQL", "the write on its way is not made"],
  ["thread-socket", OWN_CLOSE, "over a restart of the server on the same data"],
];

/** The full name of a test, as in a report. */
function nameOf({ task }: TestContext): string {
  const names = [task.name];
  for (let suite = task.suite; suite !== undefined && suite.name !== ""; suite = suite.suite)
    names.unshift(suite.name);
  return names.join(" > ");
}

beforeEach((context) => {
  const file = /([^/]+)\.test\.ts$/.exec(context.task.file.name)?.[1];
  const name = nameOf(context);
  const exception = EXCEPTIONS.find(
    ([where, , ...parts]) =>
      where === file && (parts.length === 0 || parts.some((part) => name.includes(part))),
  );
  if (exception !== undefined) context.skip(exception[1]);
});
