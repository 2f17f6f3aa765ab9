/**
 * What is used of TypeBox, and the only way to it: the build puts all of it into this one file, since reading its 700 files took
 * most of a start.
 */
export { type Static, type TSchema, Type } from "typebox";
export { Compile, type Validator } from "typebox/compile";
