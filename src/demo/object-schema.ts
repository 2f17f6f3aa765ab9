import type { Schema } from "../index.ts";

/**
 * Makes a schema from a function that returns the parsed value, or an error message as a string. Any Standard Schema
 * would work (zod, valibot, arktype); the demo makes its own so that it needs no package.
 */
export function objectSchema<T>(
  read: (value: { readonly [key: string]: unknown }) => T | string,
): Schema<unknown, T> {
  return {
    "~standard": {
      version: 1,
      vendor: "demo",
      validate(value) {
        const made = read((value ?? {}) as { readonly [key: string]: unknown });
        return typeof made === "string" ? { issues: [{ message: made }] } : { value: made };
      },
    },
  };
}
