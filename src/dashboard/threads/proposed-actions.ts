import { isJsonRecord, type JsonRecord } from "../api/records.ts";

/** An action that a graph proposes, with the kinds of decision that it allows (`ways`). */
export interface ProposedAction {
  readonly name: string;
  readonly args: JsonRecord;
  readonly description: string | null;
  readonly ways: readonly DecisionKind[];
}

export const DECISION_KINDS = ["accept", "edit", "respond", "ignore"] as const;
export type DecisionKind = (typeof DECISION_KINDS)[number];

/** The user's decision about an action. `args`: the edited arguments. `text`: the response. */
export type ActionDecision =
  | { readonly way: "accept" | "ignore" }
  | { readonly way: "edit"; readonly args: JsonRecord }
  | { readonly way: "respond"; readonly text: string };

/**
 * A question that asks for a decision about each action. `answer` converts the decisions, in the order of the actions,
 * to the answer that the graph expects.
 */
export interface ActionReview {
  readonly actions: readonly ProposedAction[];
  answer(said: readonly ActionDecision[]): unknown;
}

const str = (value: unknown): string | null => (typeof value === "string" ? value : null);

/**
 * Parses a question in one of the two formats of LangChain: that of the agent inbox, and that of the human-in-the-loop
 * middleware. Returns null for any other value.
 */
export const parseActionReview = (value: unknown): ActionReview | null =>
  humanInterrupt(value) ?? review(value);

/**
 * Parses the format of the agent inbox: `{ action_request: { action, args }, config: { allow_accept, ... },
 * description }`, or a list with one such object.
 */
function humanInterrupt(value: unknown): ActionReview | null {
  const one: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (!isJsonRecord(one) || !isJsonRecord(one["action_request"])) return null;
  const { action_request: request, config, description } = one;
  const name = str(request["action"]);
  if (name === null) return null;
  const args = isJsonRecord(request["args"]) ? request["args"] : {};
  const may = isJsonRecord(config) ? config : {};
  const ways = DECISION_KINDS.filter((way) => may[`allow_${way}`] === true);
  return {
    actions: [{ name, args, description: str(description), ways: ways.length > 0 ? ways : DECISION_KINDS }],
    answer: ([said]) => [responseOf(said, name)],
  };
}

function responseOf(said: ActionDecision | undefined, action: string): JsonRecord {
  switch (said?.way) {
    case "edit":
      return { type: "edit", args: { action, args: said.args } };
    case "respond":
      return { type: "response", args: said.text };
    case "ignore":
      return { type: "ignore", args: null };
    default:
      return { type: "accept", args: null };
  }
}

/** The kind of decision for each name in `allowed_decisions`. A rejection contains a text, like a response. */
const DECISIONS: { readonly [decision: string]: DecisionKind } = {
  approve: "accept",
  edit: "edit",
  reject: "respond",
  respond: "respond",
};

/**
 * Parses the format of the middleware: `{ action_requests: [{ name, args }], review_configs: [{ action_name,
 * allowed_decisions }] }`, in snake or camel case.
 */
function review(value: unknown): ActionReview | null {
  if (!isJsonRecord(value)) return null;
  const isSnake = Array.isArray(value["action_requests"]);
  const requests = value["action_requests"] ?? value["actionRequests"];
  if (!Array.isArray(requests) || requests.length === 0 || !requests.every(isJsonRecord)) return null;
  const listed = value["review_configs"] ?? value["reviewConfigs"];
  const configs = Array.isArray(listed) ? listed.filter(isJsonRecord) : [];
  const decisionsOf = (name: string): readonly string[] => {
    const config = configs.find((one) => (one["action_name"] ?? one["actionName"]) === name);
    const allowed = config?.["allowed_decisions"] ?? config?.["allowedDecisions"];
    return Array.isArray(allowed) ? allowed.map(String) : ["approve", "edit", "reject"];
  };
  const actions = requests.map((request): ProposedAction => {
    const name = str(request["name"]) ?? "";
    const ways = new Set(decisionsOf(name).map((decision) => DECISIONS[decision]));
    return {
      name,
      args: isJsonRecord(request["args"]) ? request["args"] : {},
      description: str(request["description"]),
      ways: DECISION_KINDS.filter((way) => ways.has(way)),
    };
  });
  const decision = (said: ActionDecision | undefined, name: string): JsonRecord => {
    if (said?.way === "edit")
      return { type: "edit", [isSnake ? "edited_action" : "editedAction"]: { name, args: said.args } };
    if (said?.way !== "respond") return { type: "approve" };
    return { type: decisionsOf(name).includes("reject") ? "reject" : "respond", message: said.text };
  };
  return {
    actions,
    answer: (said) => ({ decisions: actions.map(({ name }, i) => decision(said[i], name)) }),
  };
}
