/** The stream modes from which the dashboard shows a run. */
export const SHOWN_STREAM_MODES = ["debug", "messages-tuple", "custom", "logs"] as const;

/**
 * The stream modes of runs that the dashboard starts. LangGraph.js produces tokens only if a run requests them. Other clients that join such
 * a run get these modes by default: `values` is for them.
 */
export const REQUESTED_STREAM_MODES = ["values", ...SHOWN_STREAM_MODES] as const;
