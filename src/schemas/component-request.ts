import { Type } from "./typebox.ts";
import { shape } from "./validator.ts";

/** The component of a graph that a page wants to show. */
export const componentRequest = shape(Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }));
