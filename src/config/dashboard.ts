import { mapMembersOrThrow } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";

/** The price of a model in dollars per million tokens: `in` for tokens that the model reads, `out` for tokens that it writes. */
export interface ModelPrice {
  readonly in: number;
  readonly out: number;
}

/** Settings of the dashboard. */
export interface DashboardConfig {
  /** Prices by the model names that messages contain. */
  readonly prices?: { readonly [model: string]: ModelPrice };
}

const EXAMPLE = 'an object such as { "gpt-4o": { "in": 2.5, "out": 10 } }';

/** Reads the section `dashboard`. If a key is invalid, calls `refuse` with the key and what is wrong. */
export function parseDashboardConfig(
  { prices = {} }: JsonObject,
  refuse: (what: string) => never,
): Required<DashboardConfig> {
  if (!isObject(prices)) return refuse(`dashboard.prices must be ${EXAMPLE}`);
  const read = (price: unknown, model: string): ModelPrice => {
    const at = `dashboard.prices.${model}`;
    if (!isObject(price)) return refuse(`${at} must be an object with in and out`);
    const unknown = Object.keys(price).find((key) => key !== "in" && key !== "out");
    if (unknown !== undefined) refuse(`${at}.${unknown} is no part of a price: these are in and out`);
    const dollars = (part: keyof ModelPrice): number => {
      const value = price[part];
      return typeof value === "number" && value >= 0 && Number.isFinite(value)
        ? value
        : refuse(`${at}.${part} must be a number, 0 or more: dollars for a million tokens`);
    };
    return { in: dollars("in"), out: dollars("out") };
  };
  return { prices: mapMembersOrThrow(prices, read) };
}
