import { Annotation } from "@langchain/langgraph";

/** State of most graphs here: each node appends a line to `log`. */
export const LogState = Annotation.Root({
  log: Annotation<string[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
  topic: Annotation<string>({ reducer: (_, given) => given, default: () => "nothing" }),
});
