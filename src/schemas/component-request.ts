import { Type } from "./typebox.ts";
import { shape } from "./validator.ts";

/** Which component of a graph a page wants to show. */
export const componentRequest = shape(Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) }));
