/** Are the suite's graphs written anew in LangGraph.js? Then what our own graphs alone have is not tested. */
export const isHosted: boolean = process.env["HEDDLE_TEST_GRAPHS"] === "langgraph";
