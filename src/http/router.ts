import type { Call } from "./request-context.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** Segments by slashes; one that begins with a colon stands for any. */
  readonly path: string;
  /** Served to those who give no key, too. */
  readonly keyless?: true;
  handle(call: Call): Promise<void> | void;
}

interface Place {
  readonly named: Map<string, Place>;
  any: Place | undefined;
  readonly routes: Map<string, Route>;
}

export interface Match {
  readonly route: Route;
  /** What stood for the segments with a colon, decoded, in order. */
  readonly params: readonly string[];
}

const newPlace = (): Place => ({ named: new Map(), any: undefined, routes: new Map() });

/** Finds routes by walking the path's segments. A segment's name goes before one that stands for any. */
export class Router {
  readonly #root = newPlace();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  #add(route: Route): void {
    let place = this.#root;
    for (const segment of route.path.slice(1).split("/")) {
      if (segment.startsWith(":")) place = place.any ??= newPlace();
      else {
        const next = place.named.get(segment) ?? newPlace();
        place.named.set(segment, next);
        place = next;
      }
    }
    if (place.routes.has(route.method)) throw new TypeError(`two routes for ${route.method} ${route.path}`);
    place.routes.set(route.method, route);
  }

  /** HEAD is served as GET. Undefined where there is none, whatever the reason. */
  find(method: string, path: string): Match | undefined {
    const params: string[] = [];
    let place = this.#root;
    for (let from = 1; from <= path.length;) {
      const slash = path.indexOf("/", from);
      const end = slash < 0 ? path.length : slash;
      const segment = path.slice(from, end);
      from = end + 1;
      const named = place.named.get(segment);
      if (named !== undefined) {
        place = named;
        continue;
      }
      const decoded = decode(segment);
      if (place.any === undefined || decoded === undefined || decoded === "") return undefined;
      params.push(decoded);
      place = place.any;
      // A slash at the end names another place, which there is not.
      if (slash === path.length - 1) return undefined;
    }
    const route = place.routes.get(method === "HEAD" ? "GET" : method);
    return route === undefined ? undefined : { route, params };
  }
}

function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
