import type { Clock } from "../../ports/clock.ts";
import { ServiceError } from "../../model/errors.ts";
import { parseUuid } from "../../model/ids.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Scheduler } from "../../ports/scheduler.ts";
import type { Socket } from "../../ports/transport.ts";
import type { InspectScope } from "../../ports/inspector.ts";
import type { ActorInspection, ServerInspection } from "../../service/actor-inspection.ts";
import { failureDetailsOf } from "../../schemas/error-to-response.ts";
import { ScopeFeed, type ScopeFeedDeps } from "./scope-feed.ts";
import { InspectorPeer } from "./inspector-peer.ts";

/** The maximum number of inspector sockets that one user may have open at once. All API key holders of a tenant count as one user. */
const MAX_PEERS_PER_OWNER = 256;
/** The maximum number of inspector sockets that may be open at once in this process: enough for 16 users that each use their maximum. */
const MAX_PEERS = 4_096;
const MAX_QUERY_CHARACTERS = 1024;

/** The client of an inspector socket, with the inspection that shows only what the client may see. */
interface FeedClient {
  readonly tenant: string;
  /** The name under which the client's sockets are counted. */
  readonly budgetOwner: string;
  readonly inspection: ActorInspection;
}

export interface InspectorFeedsDeps {
  readonly inspection: ServerInspection;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Whether the state values of graphs may be shown. */
  readonly values: boolean;
}

interface Asked {
  readonly scope: InspectScope;
  readonly run: string | null;
}

/** The close code for a client without permission: 4000 plus the HTTP status 403. */
const FORBIDDEN = 4403;

/**
 * Handles the sockets of the WebSocket route `/inspect`. Its messages have the format of `@statelyai/inspect`; each message is one text
 * frame.
 */
export class InspectorFeeds {
  readonly #deps: InspectorFeedsDeps;
  readonly #feed: ScopeFeedDeps;
  readonly #feeds = new Map<string, ScopeFeed>();
  /** The number of open inspector sockets, by {@link FeedClient.budgetOwner}. */
  readonly #owners = new Map<string, number>();
  #watching = 0;
  /** The number of feeds that were created for a single user, which makes the names of these feeds unique. */
  #ofUsers = 0;

  constructor(deps: InspectorFeedsDeps) {
    this.#deps = deps;
    let seq = 0;
    this.#feed = { ...deps, nextSeq: () => ++seq };
  }

  get watching(): number {
    return this.#watching;
  }

  open(socket: Socket, { tenant, budgetOwner, inspection }: FeedClient, query: string): void {
    let gone = false;
    let left: () => void = () => undefined;
    socket.onClose(() => {
      gone = true;
      left();
    });
    const refuse = (code: number, reason: string) => socket.close(code, reason);
    const values = new URLSearchParams(query.slice(0, MAX_QUERY_CHARACTERS)).get("values");
    if (isYes(values) && !this.#deps.values) {
      return refuse(FORBIDDEN, "Values are not shown here; inspect.values in the configuration allows it");
    }
    const watching = this.#owners.get(budgetOwner) ?? 0;
    if (watching >= MAX_PEERS_PER_OWNER)
      return refuse(1013, `${MAX_PEERS_PER_OWNER} watch already; try again later`);
    if (this.#watching >= MAX_PEERS) return refuse(1013, "Too many watch already; try again later");
    this.#count(budgetOwner, 1);
    left = () => this.#count(budgetOwner, -1);
    this.#ask(tenant, inspection, query)
      .then(async ({ scope, run }) => {
        const { thread, permits } = scope;
        const recorded =
          thread === null
            ? []
            : await inspection.storedActors({ tenant, thread, ...(permits && { permits }) }, run);
        if (gone) return;
        const watcher = new InspectorPeer(socket, this.#deps.scheduler);
        const viewer = { watcher, run };
        // Feeds of users are not shared, because each user may see different threads.
        const name = JSON.stringify(permits === undefined ? scope : [scope, ++this.#ofUsers]);
        const feed = this.#feeds.get(name) ?? new ScopeFeed(scope, this.#feed);
        this.#feeds.set(name, feed);
        left = () => {
          this.#count(budgetOwner, -1);
          watcher.gone();
          if (feed.leave(viewer) && this.#feeds.get(name) === feed) this.#feeds.delete(name);
        };
        feed.join(viewer, recorded);
      })
      .catch((cause: unknown) => {
        if (gone) return;
        if (cause instanceof ServiceError) return refuse(codeOf(cause), cause.message.slice(0, 100));
        this.#deps.logger.error("a thread to be inspected could not be read", { error: String(cause) });
        refuse(1011, "The thread could not be read");
      });
  }

  #count(owner: string, by: 1 | -1): void {
    this.#watching += by;
    const watching = (this.#owners.get(owner) ?? 0) + by;
    if (watching > 0) this.#owners.set(owner, watching);
    else this.#owners.delete(owner);
  }

  /**
   * Parses the query of a socket.
   * @throws ServiceError `validation.failed` if the query is invalid, `run.not_found` if it names an unknown run
   */
  async #ask(tenant: string, inspection: ActorInspection, query: string): Promise<Asked> {
    if (query.length > MAX_QUERY_CHARACTERS)
      throw invalid(`query is longer than ${MAX_QUERY_CHARACTERS} characters`);
    const params = new URLSearchParams(query);
    const id = (name: string): string | null => {
      const text = params.get(name);
      if (text === null || text === "") return null;
      const uuid = parseUuid(text);
      if (uuid === undefined) throw invalid(`${name} must be a UUID`);
      return uuid;
    };
    const values = params.get("values");
    if (values !== null && !/^(1|0|true|false)$/.test(values)) throw invalid("values must be 1 or 0");
    const [given, run] = [id("thread_id"), id("run_id")];
    const thread = given ?? (run === null ? null : await inspection.threadOf(tenant, run));
    return { scope: await inspection.scopeOf({ tenant, thread, values: isYes(values) }), run };
  }
}

const isYes = (text: string | null): boolean => text === "1" || text === "true";

const invalid = (message: string) => new ServiceError("validation.failed", message);

function codeOf(cause: ServiceError): number {
  const { status } = failureDetailsOf(cause);
  return status < 500 ? 4000 + status : 1011;
}
