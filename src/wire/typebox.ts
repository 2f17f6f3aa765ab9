/** What is used of TypeBox, and the only way to it. */
export { type Static, type TSchema, Type } from "typebox";
export { Compile, type Validator } from "typebox/compile";
