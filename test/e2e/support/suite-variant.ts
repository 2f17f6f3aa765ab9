/** True if the suite runs over graphs rewritten in LangGraph.js (`test/langgraph/twin.ts`). */
export const isHosted: boolean = process.env["HEDDLE_TEST_GRAPHS"] === "langgraph";

/** True if every server has several shards. */
export const isSharded: boolean = process.env["HEDDLE_TEST_SHARDS"] !== undefined;

/** True if the tests ask the first of three nodes of a cluster. */
export const isInCluster: boolean = process.env["HEDDLE_TEST_CLUSTER"] !== undefined;

/**
 * True if the suite runs again over another choice than the server's default. Slow tests whose result cannot differ are
 * skipped then.
 */
export const isAgain: boolean =
  isHosted || isSharded || isInCluster || process.env["HEDDLE_TEST_TRANSPORT"] !== undefined;

/**
 * Where LangGraph.js graphs behave differently from Heddle's, because LangGraph itself does. These are the only
 * exceptions for them.
 */
const differences = {
  "a step that writes nothing": "is no `values` event, and an input that writes nothing is none either",
  "tokens that nobody asked for": "are not streamed: a run without the modes of messages has fewer events",
  "question ids": "below LangGraph 1.7 all questions of one node have one id",
  "answer schemas": "`interrupt` takes none",
  "actors of graphs within": "are their tasks alone, below the node's own task",
  "unknown keys": "of an update are passed over",
  "timeouts of nodes": "there are none below LangGraph 1.7",
  "the store of a run that has ended": "never answers: LangGraph stops its queue",
  "refused namespaces of the store": "are refused by LangGraph itself from 1.5 on, in words of its own",
  "types of values": "are not looked at: a reducer takes what it is given",
  "breakpoints in graphs within":
    "are not taken, and a breakpoint at a node that is not there is passed over",
  "statuses of tool messages": "are there when whoever made the message has given one",
  "the calls of tools": "are reported of LangChain's tools, and not of `runTools`",
  "log lines": "are the user's own affair: there is no `ctx.log`, and no `logs` event",
  "namespaces of messages": "are the task's own in `checkpoint_ns` too",
  "events of models": "have the name of the model's class, and no parents: they are LangChain's own",
  "half messages": "are not kept: `onInterrupt` is of our own lists of messages",
  "graphs that have changed":
    "are not told from what they were: tasks of nodes that are gone are passed over",
  "what does not fit": "is said when the run comes to it: LangGraph looks at nothing before",
  "the keys of an output": "are what `invoke` gives; what is streamed is the whole state",
  "answers where nothing waits": "are given to the first node that asks, unless `strict_resume` is set",
  "schemas of annotations": "tell of what kind a default is; and the configuration's is the context's",
} as const;

/** Checks whether the graphs of this run of the suite behave differently in this respect. */
export const differs = (where: keyof typeof differences): boolean => isHosted && where in differences;

/** Expected values that only Heddle's own graphs produce. */
export const ours = <T>(where: keyof typeof differences, ...seen: readonly T[]): readonly T[] =>
  differs(where) ? [] : seen;
