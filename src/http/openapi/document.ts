import { responseSchemas } from "../../schemas/record-schemas.ts";
import { Type } from "../../schemas/typebox.ts";
import type { Route } from "../router.ts";
import { requestBodies } from "./request-bodies.ts";
import { resourceRouteDescriptions } from "./assistant-cron-store-routes.ts";
import type { RouteResponse, RouteDescription, RouteDescriptions, QueryParam } from "./route-description.ts";
import { runRouteDescriptions } from "./runs.ts";
import { serverRouteDescriptions } from "./server.ts";
import { threadRouteDescriptions } from "./threads.ts";

export const allRouteDescriptions: RouteDescriptions = {
  ...threadRouteDescriptions,
  ...runRouteDescriptions,
  ...resourceRouteDescriptions,
  ...serverRouteDescriptions,
};

export interface DocumentOptions {
  readonly version: string;
  /** The prefix of all paths. */
  readonly mount: string;
  readonly needsCredentials: boolean;
}

const ABOUT = `Heddle speaks the LangGraph Platform API. Every failure is answered with \`{"detail"}\`, and one of validation also
with \`errors\`, which name the fields.

WebSockets: \`/threads/{thread_id}/runs/{run_id}/stream\` and \`/threads/{thread_id}/stream\` mirror the streams, one JSON frame
an event; \`/threads/{thread_id}/stream/events\` speaks protocol v2; \`/inspect\` shows actors.`;

/** Creates the OpenAPI 3.1 document from the routes and from the schemas that validate requests. */
export function openApiOf(
  routes: readonly Route[],
  { version, mount, needsCredentials }: DocumentOptions,
): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const operations = (paths[path] ??= {});
    const described = allRouteDescriptions[`${route.method} ${route.path}`];
    if (described !== undefined)
      operations[route.method.toLowerCase()] = operationOf(route, described, needsCredentials);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Heddle", version, description: ABOUT },
    servers: [{ url: mount === "" ? "/" : mount }],
    ...(needsCredentials && { security: [{ apiKey: [] }, { bearer: [] }] }),
    tags: [...new Set(Object.values(allRouteDescriptions).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...requestBodies, ...responseSchemas },
      ...(needsCredentials && {
        securitySchemes: {
          apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
          bearer: { type: "http", scheme: "bearer" },
        },
      }),
    },
  };
}

function operationOf(
  route: Route,
  { tag, summary, more, query = [], body, many, answer, instead = {} }: RouteDescription,
  needsCredentials: boolean,
) {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: name.endsWith("_id") && name !== "assistant_id" ? Type.String({ format: "uuid" }) : Type.String(),
  }));
  const schema = body && refTo(body);
  return {
    tags: [tag],
    summary,
    ...(more !== undefined && { description: more }),
    operationId: `${route.method.toLowerCase()}${route.path.replaceAll(/[\W_]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    ...(needsCredentials && route.access === "public" && { security: [] }),
    parameters: [...inPath, ...query.map(paramOf)],
    ...(schema && {
      requestBody: {
        required: true,
        content: {
          "application/json": { schema: many === true ? { type: "array", items: schema } : schema },
        },
      },
    }),
    responses: {
      ...answered(answer),
      ...Object.fromEntries(Object.entries(instead).map(([status, when]) => [status, { description: when }])),
      default: FAILURE,
    },
  };
}

const paramOf = ({ name, about, schema }: QueryParam) => ({
  name,
  in: "query",
  ...(about !== undefined && { description: about }),
  schema,
});

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const FAILURE = {
  description: "It was refused, or failed",
  content: { "application/json": { schema: refTo("Error") } },
};

function answered(answer: RouteResponse): { readonly [status: string]: unknown } {
  switch (answer.kind) {
    case "none":
      return { [answer.status]: { description: answer.status === 202 ? "It is taken" : "It is done" } };
    case "stream":
      return {
        200: {
          description: "Server-sent events",
          content: { "text/event-stream": { schema: { type: "string" } } },
        },
      };
    case "text": {
      const content = {
        [answer.type]: { schema: { type: "string" } },
        ...(answer.json && { "application/json": { schema: answer.json } }),
      };
      return { 200: { description: "As text", content } };
    }
    case "json": {
      const { schema, status, what } = answer;
      const shown =
        typeof schema === "string"
          ? refTo(schema)
          : Array.isArray(schema)
            ? { type: "array", items: refTo(schema[0] as string) }
            : schema;
      const described = what === "" ? (typeof schema === "string" ? schema : "What was asked for") : what;
      return { [status]: { description: described, content: { "application/json": { schema: shown } } } };
    }
    default:
      return answer satisfies never;
  }
}
