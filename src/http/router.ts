import type { RouteCall } from "./route-call.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Route {
  readonly method: Method;
  /** Segments separated by slashes. A segment that begins with a colon is a parameter. */
  readonly path: string;
  /**
   * Which clients may use the route. `public`: everybody, without credentials. `users`: also users whom the project's own code has
   * authenticated; everything that the route does MUST go through {@link RouteCall.service}, which checks their permissions. Absent: only
   * API key holders. If the server needs no credentials, everybody may use every route.
   */
  readonly access?: "public" | "users";
  handle(call: RouteCall): Promise<void> | void;
}

interface RouteNode {
  readonly named: Map<string, RouteNode>;
  any: RouteNode | undefined;
  readonly routes: Map<string, Route>;
}

export interface Match {
  readonly route: Route;
  /** The values of the path parameters, URL-decoded, in the order of the path. */
  readonly params: readonly string[];
}

const newRouteNode = (): RouteNode => ({ named: new Map(), any: undefined, routes: new Map() });

/** Finds routes by the segments of a path. A literal segment takes precedence over a parameter. */
export class Router {
  readonly #root = newRouteNode();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  #add(route: Route): void {
    let node = this.#root;
    for (const segment of route.path.slice(1).split("/")) {
      if (segment.startsWith(":")) node = node.any ??= newRouteNode();
      else {
        const next = node.named.get(segment) ?? newRouteNode();
        node.named.set(segment, next);
        node = next;
      }
    }
    if (node.routes.has(route.method)) throw new TypeError(`two routes for ${route.method} ${route.path}`);
    node.routes.set(route.method, route);
  }

  /** Finds the route of a request; undefined if there is none. HEAD is served as GET. A parameter never matches an empty segment. */
  find(method: string, path: string): Match | undefined {
    const params: string[] = [];
    let node = this.#root;
    for (let from = 1; from <= path.length;) {
      const slash = path.indexOf("/", from);
      const end = slash < 0 ? path.length : slash;
      const segment = path.slice(from, end);
      from = end + 1;
      const named = node.named.get(segment);
      if (named !== undefined) {
        node = named;
        continue;
      }
      const decoded = decode(segment);
      if (node.any === undefined || decoded === undefined || decoded === "") return undefined;
      params.push(decoded);
      node = node.any;
      // A path that ends with a slash is another path, which does not exist.
      if (slash === path.length - 1) return undefined;
    }
    const route = node.routes.get(method === "HEAD" ? "GET" : method);
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
