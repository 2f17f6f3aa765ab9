import { Type } from "./typebox.ts";
import { bodySchema } from "./validator.ts";

/** The component of a graph that a page wants to show. */
export const parseComponentRequest = bodySchema(
  Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }),
);
