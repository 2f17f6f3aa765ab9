import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import type { KeyRange } from "./leveldb/table-check.ts";

/** A record of found damage. It is kept until the operator accepts the damage. */
export interface DamageRecord {
  /** When the damage was found, in ISO 8601. */
  readonly found_at: string;
  readonly what: string;
  /** What may have lost acknowledged writes: threads, given by the prefix of their keys, and keys that belong to no thread. */
  readonly touches: readonly string[];
  readonly ranges: readonly KeyRange[];
  /** True: it is unknown what was lost, so any data may be affected. */
  readonly unknown: boolean;
}

/** The file of the damage records (findings). It is outside the database. */
export const DAMAGE_FILE = "damage.json";
/**
 * The file with the findings that an operator has accepted. Heddle appends to the file and does not use its content; it is for people to
 * read.
 */
const ACCEPTED = "damage-accepted.json";

/** The stored findings, in a file outside the database. LevelDB itself does not record which data it has dropped. */
export class DamageRecords {
  readonly #directory: string;
  #list: readonly DamageRecord[];

  constructor(directory: string) {
    this.#directory = directory;
    this.#list = read(join(directory, DAMAGE_FILE));
  }

  get list(): readonly DamageRecord[] {
    return this.#list;
  }

  /** Adds the findings that are not known yet. */
  add(findings: readonly DamageRecord[]): void {
    const known = new Set(this.#list.map(damageId));
    const added = findings.filter((finding) => !known.has(damageId(finding)));
    if (added.length === 0) return;
    const list = [...this.#list, ...added];
    // If this throws, `#list` does not have the findings yet, so a later call stores them.
    store(join(this.#directory, DAMAGE_FILE), list);
    this.#list = list;
  }

  /** Moves all findings to the file of accepted findings, and returns them. */
  accept(at: string): readonly DamageRecord[] {
    const accepted = this.#list;
    if (accepted.length === 0) return [];
    const path = join(this.#directory, ACCEPTED);
    store(path, [...read(path), ...accepted.map((finding) => ({ ...finding, accepted_at: at }))]);
    rmSync(join(this.#directory, DAMAGE_FILE), { force: true });
    this.#list = [];
    return accepted;
  }
}

/** Identifies the damage: two records of the same damage differ only in their time. */
export function damageId({ what, touches, ranges }: DamageRecord): string {
  return JSON.stringify([what, touches, ranges]);
}

function read(path: string): readonly DamageRecord[] {
  if (!existsSync(path)) return [];
  try {
    const list = JSON.parse(readFileSync(path, "utf8")) as DamageRecord[];
    if (
      list.every(
        ({ what, touches, ranges }) => typeof what === "string" && touches.length >= 0 && ranges.length >= 0,
      )
    )
      return list;
  } catch {
    // The file cannot be read. The error is thrown below.
  }
  throw new ServiceError(
    "journal.damaged",
    `${path} cannot be read, and it says what of the data must not be trusted`,
  );
}

function store(path: string, value: unknown): void {
  const made = `${path}.tmp`;
  writeFileSync(made, `${JSON.stringify(value, null, 2)}\n`, { flush: true });
  renameSync(made, path);
}
