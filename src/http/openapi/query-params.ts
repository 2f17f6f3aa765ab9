import { PAGE_LIMITS, PAGE_OFFSETS } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import type { QueryParam } from "./route-description.ts";

export const flagParam = (name: string, about: string): QueryParam => ({
  name,
  about,
  schema: Type.Boolean(),
});

export const textParam = (name: string, about: string): QueryParam => ({
  name,
  about,
  schema: Type.String(),
});

export const listParam = (name: string, about: string): QueryParam => ({
  name,
  about: `${about}; repeated, with commas, or as a JSON array`,
  schema: Type.Array(Type.String()),
});

export const choiceParam = (name: string, choices: readonly string[], about: string): QueryParam => ({
  name,
  about,
  schema: Type.Enum([...choices]),
});

export const limitParam: QueryParam = {
  name: "limit",
  about: "How many at most",
  schema: Type.Integer({
    minimum: PAGE_LIMITS.least,
    maximum: PAGE_LIMITS.most,
    default: PAGE_LIMITS.initial,
  }),
};

export const offsetParam: QueryParam = {
  name: "offset",
  about: "How many to pass over",
  schema: Type.Integer({
    minimum: PAGE_OFFSETS.least,
    maximum: PAGE_OFFSETS.most,
    default: PAGE_OFFSETS.initial,
  }),
};
