import { similarName } from "../model/similar-name.ts";
import { isObject, type JsonObject } from "../model/json.ts";

/**
 * How Heddle treats a key of LangGraph's configuration file:
 * - `served`: the key has its effect.
 * - `moot`: ignored without a warning, because the key is about something that Heddle does not need, such as an image to build.
 * - `ignored`: ignored with a warning that contains the text.
 * - `keys`: the key holds an object with these keys.
 * - `each`: the key holds an object with any member names, such as names of graphs. Each member that is an object has the keys named here.
 * - `refused`: the server does not start, because it would behave differently from what the author of the file expects. The error contains
 *   the text.
 *
 * When a feature is added to Heddle, its key becomes `served`.
 */
type Stance =
  | "served"
  | "moot"
  | Keys
  | { readonly each: Keys }
  | { readonly ignored: string }
  | { readonly refused: string };

interface Keys {
  readonly keys: { readonly [key: string]: Stance };
}

/**
 * Why a configuration that asks for encryption at rest is refused. LangGraph's own server supports it only for Python graphs: the
 * JavaScript SDK has no way to define the handlers.
 */
export const ENCRYPTION_REFUSAL =
  "is not served: the data directory would hold as plain data what it asks to encrypt; remove it, and encrypt the disk instead";

const FILE: Keys = {
  keys: {
    graphs: { each: { keys: { path: "served", description: "served" } } },
    env: "served",
    streams: { keys: { sync: "served", ttl: "served", stacks: "served" } },
    nodes: { keys: { workers: "served" } },
    runs: {
      keys: {
        max_concurrent: "served",
        max_per_tenant: "served",
        max_per_graph: "served",
        max_queued: "served",
        max_queued_per_tenant: "served",
        max_queued_bytes: "served",
        max_state_bytes: "served",
        max_attempts: "served",
        grace_ms: "served",
        timeout: "served",
      },
    },
    http: {
      keys: {
        max_body: "served",
        allowed_hosts: "served",
        cors: {
          keys: {
            allow_origins: "served",
            allow_origin_regex: "served",
            allow_methods: "served",
            allow_headers: "served",
            expose_headers: "served",
            allow_credentials: "served",
            max_age: "served",
          },
        },
        mount_prefix: "served",
        disable_assistants: "served",
        disable_threads: "served",
        disable_runs: "served",
        disable_store: "served",
        disable_meta: "served",
        disable_ui: "served",
        disable_mcp: "served",
        disable_a2a: "served",
        disable_webhooks: "served",
        app: "served",
        configurable_headers: { keys: { includes: "served", excludes: "served" } },
        enable_custom_route_auth: "moot",
        middleware_order: { ignored: "there is no middleware to order" },
        logging_headers: { ignored: "headers are never logged" },
      },
    },
    auth: {
      keys: {
        path: "served",
        disable_studio_auth: "served",
        jwt: { keys: { issuer: "served", audience: "served", jwks: "served" } },
        cache: { ignored: "each request is authenticated anew" },
        openapi: { ignored: "the description of the server names its own ways to authenticate" },
      },
    },
    encryption: { refused: ENCRYPTION_REFUSAL },
    webhooks: {
      keys: {
        allow_internal: "served",
        secret: "served",
        headers: "served",
        env_prefix: "served",
        timeout: "served",
        attempts: "served",
        url: {
          keys: {
            require_https: "served",
            allowed_domains: "served",
            allowed_ports: "served",
            disable_loopback: "served",
            max_url_length: "served",
          },
        },
      },
    },
    inspect: { keys: { values: "served", viewer: "served" } },
    dashboard: { keys: { prices: "served" } },
    store: {
      keys: {
        index: { keys: { embed: "served", dims: "served", fields: "served" } },
        ttl: {
          keys: { default_ttl: "served", refresh_on_read: "served", sweep_interval_minutes: "served" },
        },
      },
    },
    checkpointer: {
      keys: {
        backend: { ignored: "Heddle keeps checkpoints itself, in its data directory" },
        path: { ignored: "Heddle keeps checkpoints itself, in its data directory" },
        serde: "moot",
        ttl: {
          keys: {
            strategy: "served",
            default_ttl: "served",
            sweep_interval_minutes: "served",
            sweep_limit: { ignored: "a sweep takes up all threads that are due" },
          },
        },
      },
    },
    ui: "served",
    ui_config: { keys: { shared: "served" } },
    host: { ignored: "--host or the variable HOST sets it" },
    port: { ignored: "--port or the variable PORT sets it" },
    node_loader: { ignored: "TypeScript is loaded by tsx" },
    $schema: "moot",
    node_version: "moot",
    python_version: "moot",
    dependencies: "moot",
    dockerfile_lines: "moot",
    docker_compose_file: "moot",
    base_image: "moot",
    image_distro: "moot",
    api_version: "moot",
    pip_config_file: "moot",
    pip_installer: "moot",
    keep_pkg_tools: "moot",
    _INTERNAL_docker_tag: "moot",
  },
};

/** Whether a value has the same effect as leaving out the key, or asks for what Heddle does anyway. */
function saysNothing(value: unknown): boolean {
  if (value === null || value === false || value === "tsx" || value === "default") return true;
  return isObject(value) && Object.keys(value).length === 0;
}

/** The full names of the keys that have an effect, such as `http.app`. */
export function servedKeys({ keys }: Keys = FILE, above = ""): readonly string[] {
  return Object.entries(keys).flatMap(([key, stance]) => {
    if (stance === "served" || (typeof stance === "object" && "each" in stance)) return [above + key];
    return typeof stance === "object" && "keys" in stance ? servedKeys(stance, `${above}${key}.`) : [];
  });
}

/**
 * Checks the keys of a configuration file. Returns warnings about ignored and unknown keys. Calls `refuse` for each key that Heddle must
 * not silently ignore, and for each section that is not an object.
 */
export function checkConfigKeys(root: JsonObject, refuse: (what: string) => void): readonly string[] {
  const notes: string[] = [];
  const visit = (holder: JsonObject, { keys }: Keys, above: string): void => {
    for (const [key, value] of Object.entries(holder)) {
      const name = above + key;
      const stance = Object.hasOwn(keys, key) ? keys[key] : undefined;
      if (stance === undefined) {
        const meant = similarName(key, Object.keys(keys));
        const hint = meant === undefined ? "" : `; did you mean ${above}${meant}?`;
        notes.push(`${name} is no key that Heddle knows${hint}`);
      } else if (stance === "served" || stance === "moot" || saysNothing(value)) continue;
      else if ("refused" in stance) refuse(`${name} ${stance.refused}`);
      else if ("each" in stance) {
        for (const [each, one] of Object.entries(isObject(value) ? value : {}))
          if (isObject(one)) visit(one, stance.each, `${name}.${each}.`);
      } else if ("ignored" in stance) notes.push(`${name} is left out: ${stance.ignored}`);
      else if (isObject(value)) visit(value, stance, `${name}.`);
      else refuse(`${name} must be an object`);
    }
  };
  visit(root, FILE, "");
  return notes;
}
