/** The input of each run of a hosted graph. Apart from the graphs: who measures need not load LangGraph.js. */
export const questionInput = { messages: [{ role: "user", content: "q".repeat(200) }] };
