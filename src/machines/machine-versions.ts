import { md5Hex } from "../model/ids.ts";
import { isObject, type JsonObject, toStorable } from "../model/json.ts";
import type { DelayedTransition, MachineDriver } from "./machine-driver.ts";
import {
  graphChangedError,
  MACHINE_KEYS,
  snapshotOf,
  SNAPSHOT_KEY,
  STATE_KEY,
  storedMachineOf,
  VERSION_KEY,
  timersOf,
  type StartedPromiseActor,
} from "./machine-state.ts";
import {
  addressKey,
  type ChildrenByAddress,
  isSameActorAddress,
  namespaceOfActor,
} from "./stored-child-machines.ts";

/**
 * Converts an XState snapshot from another version of the machine into one for the current version. `from`: the version that made the
 * snapshot; null if it declared no version.
 */
export type Migrate = (snapshot: JsonObject, from: string | null) => unknown;

/**
 * The versions of one machine. A state is continued by the version that made it. If the graph does not have that version, `migrate`
 * converts the state for the current version.
 */
export class MachineVersions {
  /** The version with which new machines start. */
  readonly current: MachineDriver;
  /** A hash of the structures of all versions. It changes if any version changes. */
  readonly hash: string;
  /** The descriptors of events that any of the versions handles. */
  readonly events: readonly string[];
  /** Whether at least one of the machines declares a `version`. Each thread then stores the version of the machine that made its state. */
  readonly areDeclared: boolean;
  /** Whether at least one of the machines declares schemas. */
  readonly haveSchemas: boolean;
  /** Whether there is only one version, so that a state's version need not be known. */
  readonly isSingle: boolean;
  readonly #drivers: readonly MachineDriver[];
  readonly #migrate: Migrate | undefined;

  /** @param drivers the drivers of at least one version, the current version last */
  constructor(drivers: readonly MachineDriver[], migrate: Migrate | undefined) {
    this.current = drivers.at(-1) as MachineDriver;
    this.hash = drivers.length === 1 ? this.current.hash : md5Hex(drivers.map(({ hash }) => hash).join());
    this.areDeclared = drivers.some(({ version }) => version !== null);
    this.haveSchemas = drivers.some(({ schemas }) => schemas !== null);
    this.isSingle = drivers.length === 1;
    this.events = [...new Set(drivers.flatMap(({ events }) => events))];
    this.#drivers = drivers;
    this.#migrate = migrate;
  }

  /**
   * Returns the state and the driver that continues it: the driver of the state's version, or the driver of the current version and the
   * migrated state.
   * @throws GraphChangedError if the version is missing and the state cannot be migrated
   */
  continuationOf(state: JsonObject): { readonly driver: MachineDriver; readonly state: JsonObject } {
    const version = versionOfState(state);
    const driver = this.find(version);
    if (driver !== undefined) return { driver, state };
    if (this.#migrate === undefined) throw this.#missing(version);
    return { driver: this.current, state: this.#migrated(state, this.#migrate) };
  }

  /** Returns the driver of a version. @throws GraphChangedError if the version is missing */
  driverOf(version: string | null): MachineDriver {
    const driver = this.find(version);
    if (driver === undefined) throw this.#missing(version);
    return driver;
  }

  /** Whether a state of this version has to be migrated before it can continue. False if there is no `migrate`: the state then cannot. */
  mustMigrate(version: string | null): boolean {
    return this.#migrate !== undefined && this.find(version) === undefined;
  }

  /** Returns the driver of a version; undefined if the graph does not have the version. */
  find(version: string | null): MachineDriver | undefined {
    return this.#drivers.find((one) => one.version === version);
  }

  /**
   * Returns the drivers of the versions that may continue a state: the version that made the state, or none if the graph does not have it.
   * All versions if the state contains no machine.
   */
  driversFor(state: JsonObject): readonly MachineDriver[] {
    if (state[SNAPSHOT_KEY] === undefined && state[VERSION_KEY] === undefined) return this.#drivers;
    const driver = this.find(versionOfState(state));
    return driver === undefined ? [] : [driver];
  }

  #missing(version: string | null): Error {
    const known = this.#drivers.map((one) => describeVersion(one.version)).join(", ");
    return graphChangedError(
      `The machine of this thread has ${describeVersion(version)}, those of the graph have ${known}. Nothing is lost: list it in versions, ` +
        `give the graph a migrate function, or set ${VERSION_KEY} and ${STATE_KEY} by a state update`,
    );
  }

  #migrated(state: JsonObject, migrate: Migrate): JsonObject {
    const version = versionOfState(state);
    const { value, context, rest } = snapshotOf(state);
    const kept = storedMachineOf(state);
    const to = describeVersion(this.current.version);
    try {
      const made = toStorable(migrate(structuredClone({ ...rest, value, context }), version), "snapshot");
      if (!isObject(made) || !isObject(made["context"]) || made["value"] === undefined)
        throw new TypeError("it must return a snapshot, an object with value and context");
      const { value: newValue, context: newContext, ...given } = made as JsonObject & { context: JsonObject };
      const newRest = { status: "active", historyValue: {}, children: {}, ...given };
      const unset = Object.keys(state).filter(
        (key) => !MACHINE_KEYS.has(key) && !Object.hasOwn(newContext, key),
      );
      const fault = this.current.whyNotState(newValue);
      if (fault !== undefined) throw new TypeError(`the value of the snapshot ${fault}`);
      const { snapshot, working, delayed } = this.current.completed({
        value: newValue,
        context: newContext,
        rest: newRest,
      });
      const children = (kept.children ?? []).filter(({ at }) => hasChild(snapshot.rest, at[0]));
      const byAddress: ChildrenByAddress = new Map(children.map((one) => [addressKey(one.at), one]));
      let { started } = kept;
      const work = working.map((start): StartedPromiseActor => {
        const before = kept.work.find(({ at }) => isSameActorAddress(at, start.at));
        const ns = namespaceOfActor(byAddress, start.at);
        return before ?? { ...start, start: ++started, ...(ns !== "" && { ns }) };
      });
      const isSet = ({ id }: DelayedTransition) =>
        timersOf(state).some(({ name, from }) => name === id && from.length === 0);
      const entered = delayed.filter((one) => !isSet(one));
      return {
        ...state,
        ...Object.fromEntries(unset.map((key) => [key, null])),
        ...newContext,
        [STATE_KEY]: newValue,
        [SNAPSHOT_KEY]: {
          ...kept,
          rest: snapshot.rest,
          unset,
          work,
          started,
          children,
          ...(entered.length > 0 && { delayed: entered }),
        },
        [VERSION_KEY]: this.current.version,
      };
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      throw graphChangedError(
        `The machine of this thread has ${describeVersion(version)}, and its migration to ${to} failed: ${why}`,
        thrown,
      );
    }
  }
}

const hasChild = ({ children }: JsonObject, id = "") => isObject(children) && children[id] !== undefined;

export const describeVersion = (version: string | null) =>
  version === null ? "no version" : `version "${version}"`;

/** The version of the machine that made a state; null if that machine declared none. */
export function versionOfState(state: JsonObject): string | null {
  const version = state[VERSION_KEY];
  return version === undefined || version === null ? null : String(version);
}
