import { Type } from "./typebox.ts";
import { compileBodySchema } from "./validator.ts";

/** The body of a request for a UI component: the name of the component. */
export const componentRequestSchema = compileBodySchema(
  Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }),
);
