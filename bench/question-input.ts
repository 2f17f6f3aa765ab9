/**
 * The input of each run of the LangGraph.js graph. It is in a file of its own so that the process that measures does
 * not load LangGraph.js.
 */
export const questionInput = { messages: [{ role: "user", content: "q".repeat(200) }] };
