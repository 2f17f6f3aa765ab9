import { toStorable } from "../../model/json.ts";
import type { ChannelRule } from "../channel.ts";
import { jsonSchemaOf } from "../json-schema-conversion.ts";
import { fieldErrors, parse, schemaFingerprint, type Schema } from "../standard-schema.ts";

/** Makes the members of a {@link ChannelRule} that depend only on a schema. */
export function schemaRules(schema: Schema): Pick<ChannelRule, "shape" | "check" | "describe"> {
  return {
    shape: schemaFingerprint(schema),
    check: (stored, at) => fieldErrors(schema, stored, at),
    describe: (side) => jsonSchemaOf(schema, side),
  };
}

/**
 * Makes the function `read` of a {@link ChannelRule}: it validates a task's write with the schema, if there is one, and
 * returns a storable copy.
 */
export function writeParserOf(schema: Schema | undefined): ChannelRule["read"] {
  return schema === undefined ? toStorable : (write, at) => toStorable(parse(schema, write, at), at);
}
