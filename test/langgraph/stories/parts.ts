import { Annotation, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import type { Deed, Seen } from "../driving.ts";

export interface Story {
  readonly make: () => unknown;
  readonly deeds: readonly Deed[];
  /** What is not the same, and why. */
  readonly but?: (seen: Seen) => unknown;
  /** The minor version of LangGraph.js from which on both are the same, and what it does before. */
  readonly since?: readonly [minor: number, before: string];
}

/** By what they tell. */
export type Stories = Readonly<Record<string, Story>>;

export type Config = LangGraphRunnableConfig;

export const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  last: Annotation<unknown>,
});

export const say = (text: string) => () => ({ log: [text] });

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const sub = (name: string) =>
  new StateGraph(Log)
    .addNode("x", say(`${name} x`))
    .addNode("y", say(`${name} y`))
    .addEdge(START, "x")
    .addEdge("x", "y")
    .compile();

/** Hosted graphs fork with every version. */
export const SINCE_FORKS = [
  4,
  "it goes on from an older checkpoint without a fork, and asks nothing again",
] as const;

/** LangGraph shows an older state with what a later command has written to it; here it stays as it was. */
export const exceptHistory = ({ streams, state }: Seen): unknown => ({ streams, state });

/** LangGraph shows planned tasks of an older checkpoint with what an earlier run had of them; here it is kept until their step's checkpoint. */
export const exceptEarlierResults = (seen: Seen): unknown =>
  JSON.parse(
    JSON.stringify(seen, (_, value: unknown) =>
      typeof value === "object" && value !== null && "path" in value
        ? { ...value, result: undefined }
        : value,
    ),
  );

/** Tasks of a graph without checkpoints: which step they are of is told by those. */
export const exceptSteps = (seen: Seen): unknown =>
  JSON.parse(JSON.stringify(seen, (key, value: unknown) => (key === "step" ? 0 : value)));
