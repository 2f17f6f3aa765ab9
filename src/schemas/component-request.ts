import { Type } from "./typebox.ts";
import { compileBodySchema } from "./validator.ts";

/** The component of a graph that a page wants to show. */
export const componentRequestSchema = compileBodySchema(
  Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }),
);
