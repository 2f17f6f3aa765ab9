import { LIMITS, OFFSETS } from "../../schemas/request-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import type { Param } from "./route-description.ts";

/** Query parameters that several routes share. */

export const flag = (name: string, about: string): Param => ({ name, about, schema: Type.Boolean() });

export const text = (name: string, about: string): Param => ({ name, about, schema: Type.String() });

export const list = (name: string, about: string): Param => ({
  name,
  about: `${about}; repeated, with commas, or as a JSON array`,
  schema: Type.Array(Type.String()),
});

export const choice = (name: string, choices: readonly string[], about: string): Param => ({
  name,
  about,
  schema: Type.Enum([...choices]),
});

export const limit: Param = {
  name: "limit",
  about: "How many at most",
  schema: Type.Integer({ minimum: LIMITS.least, maximum: LIMITS.most, default: LIMITS.initial }),
};

export const offset: Param = {
  name: "offset",
  about: "How many to pass over",
  schema: Type.Integer({ minimum: OFFSETS.least, maximum: OFFSETS.most, default: OFFSETS.initial }),
};
