import { expect, test } from "vitest";
import { runCreateSchema, threadSearchSchema } from "../../src/schemas/request-schemas.ts";

const MODES =
  "values, updates, messages, messages-tuple, custom, debug, tasks, checkpoints, events, tools, logs";

test.each<[string, () => unknown, string]>([
  ["a missing field", () => runCreateSchema.parse({}), "assistant_id is required"],
  ["a wrong type", () => runCreateSchema.parse({ assistant_id: 1 }), "assistant_id must be a string"],
  [
    "a wrong type of an object",
    () => threadSearchSchema.parse({ metadata: "a" }),
    "metadata must be an object",
  ],
  [
    "one of several alternatives",
    () => runCreateSchema.parse({ assistant_id: "a", stream_mode: "value" }),
    `stream_mode must be one of ${MODES}, or an array`,
  ],
  [
    "an entry of a list",
    () => runCreateSchema.parse({ assistant_id: "a", stream_mode: ["values", "value"] }),
    `stream_mode[1] must be one of ${MODES}`,
  ],
])("the message names the field and what it must be: %s", (_, parse, message) => {
  expect(parse).toThrow(expect.objectContaining({ message }));
});
