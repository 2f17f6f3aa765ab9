import { ServiceError } from "../model/errors.ts";
import { permitsOf } from "../model/permitted-resources.ts";
import type { ActorInspection, MachineInfo, ServerInspection } from "../service/actor-inspection.ts";
import type { Assistants } from "../service/assistants.ts";
import type { UserAuthorizer } from "./user-authorizer.ts";

interface Deps {
  readonly inspection: ServerInspection;
  /** The assistants, restricted to what the user may use. */
  readonly assistants: Assistants;
  readonly tenant: string;
  readonly rules: UserAuthorizer;
}

/**
 * Restricts the inspector to what one user may see: threads that the user may read, and graphs whose default assistant the user may read.
 */
export function authorizedInspection({ inspection, assistants, tenant, rules }: Deps): ActorInspection {
  /**
   * Whether the user may see a machine. For a graph, the rules for its default assistant decide. The machines of threads, runs and tasks
   * are visible to all users.
   */
  async function isVisible({ id }: MachineInfo): Promise<boolean> {
    if (!id.startsWith("graph:")) return true;
    try {
      await assistants.get(tenant, id.slice("graph:".length));
      return true;
    } catch (cause) {
      const isRefusal =
        cause instanceof ServiceError &&
        (cause.code === "assistant.not_found" || cause.code === "auth.forbidden");
      if (isRefusal) return false;
      throw cause;
    }
  }

  const searchable = async () => permitsOf(await rules.decide("threads:search", { metadata: undefined }));

  return {
    async machines() {
      const visible: MachineInfo[] = [];
      for (const machine of inspection.machines()) if (await isVisible(machine)) visible.push(machine);
      return visible;
    },

    async machine(id) {
      const machine = inspection.machine(id);
      return machine !== undefined && (await isVisible(machine)) ? machine : undefined;
    },

    liveThreads: async (of, limit) => inspection.liveThreads(of, limit, await searchable()),

    async threadOf(of, run) {
      // The handler gets no thread id, because the rules decide before the thread of the run is looked up.
      const permission = await rules.decide("threads:read", { thread_id: undefined });
      return inspection.threadOf(of, run, permitsOf(permission));
    },

    async scopeOf(scope) {
      const { thread } = scope;
      const permits =
        thread === null
          ? await searchable()
          : permitsOf(await rules.decide("threads:read", { thread_id: thread }));
      return { ...scope, permits };
    },

    storedActors: async (key, run) =>
      inspection.storedActors(await rules.threadKey(key, "threads:read"), run),

    actors: async (key, run) => inspection.actors(await rules.threadKey(key, "threads:read"), run),

    // Never called: the inspector's feeds call `watch` of the unrestricted inspection, with the result of `scopeOf`.
    watch: () => {
      throw new TypeError("a user watches in a scope that was decided on");
    },
  };
}
