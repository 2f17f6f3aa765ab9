import type { Schema } from "../index.ts";

/** What `read` makes of a value, or what is wrong with it. Any Standard Schema would do (zod, valibot, arktype); the demo writes its own, to need no package. */
export function schema<T>(
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
