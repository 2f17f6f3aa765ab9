import { Type } from "./typebox.ts";
import { compileBodySchema } from "./body-schema.ts";

export const componentRequestSchema = compileBodySchema(
  Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }),
);
