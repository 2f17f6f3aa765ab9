import { ServiceError, invalidField } from "../model/errors.ts";
import type { Eventually } from "../ports/eventually.ts";
import { parseObject, type RawBody } from "../schemas/body.ts";

/** The largest number of pending commands of one socket. */
const MAX_PENDING_COMMANDS = 32;
/** The largest total size of the pending commands, in characters. A single command may be larger. */
const BYTES = 1024 * 1024;
/**
 * A command with more characters than this is parsed in a turn of the event loop of its own. Several large commands in one turn would block all
 * other work.
 */
const LARGE = 64 * 1024;
/**
 * The number of command ids that are remembered. A command with a remembered id is refused, so that a command that the client repeats is
 * not executed twice.
 */
const IDS = 1024;
/** The maximum length of an id, in characters. */
const MAX_ID_CHARACTERS = 200;

export type CommandId = string | number;

interface Command {
  readonly id: CommandId;
  readonly body: RawBody;
}

/** Executes one command, and answers it when the change is stored. */
type Do = (id: CommandId, body: RawBody) => Promise<void>;

/** Answers a command that was not executed. `id` is null if the id could not be read. */
type Refuse = (id: CommandId | null, cause: unknown) => void;

const busy = new ServiceError(
  "server.busy",
  `More than ${MAX_PENDING_COMMANDS} commands, or 1 MiB of them, are not done yet`,
);

/**
 * The commands of one socket. They are executed one after the other in the order of their arrival, so that, for example, a cancellation
 * finds the run that an earlier command has started. Each command is answered exactly once, when its change is stored.
 */
export class CommandQueue {
  readonly #do: Do;
  readonly #refuse: Refuse;
  readonly #turn: () => Promise<void>;
  readonly #rest: () => void;
  readonly #ids = new Set<CommandId>();
  #waiting = 0;
  #bytes = 0;
  #last: Promise<void> = Promise.resolve();

  /** `turn` resolves when a large command may be parsed. `rest` is called when the last pending command has been answered. */
  constructor(doIt: Do, refuse: Refuse, turn: () => Promise<void>, rest: () => void = () => undefined) {
    this.#do = doIt;
    this.#refuse = refuse;
    this.#turn = turn;
    this.#rest = rest;
  }

  take(message: Uint8Array | string): void {
    let id: CommandId | null = null;
    try {
      if (typeof message !== "string") throw invalidField("command", "must be a text message, as JSON");
      const { length } = message;
      const isBusy =
        this.#waiting >= MAX_PENDING_COMMANDS || (this.#waiting > 0 && this.#bytes + length > BYTES);
      if (length > LARGE) {
        if (isBusy) throw busy;
        return this.#enqueue(length, () => this.#turn().then(() => this.#parse(message)));
      }
      const command = this.#parse(message);
      id = command.id;
      if (isBusy) throw busy;
      const isNew = this.#remember(id);
      this.#enqueue(length, () => command, isNew);
    } catch (cause) {
      this.#refuse(id, cause);
    }
  }

  #parse(message: string): Command {
    const body = parseObject(Buffer.from(message), "command");
    return { id: idOf(body["id"]), body };
  }

  /** Adds a command to the queue. `isNew`: whether the command's id is new; undefined if the id is not known yet. */
  #enqueue(length: number, take: () => Eventually<Command>, isNew?: boolean): void {
    this.#waiting++;
    this.#bytes += length;
    this.#last = this.#last.then(async () => {
      let id: CommandId | null = null;
      try {
        const taken = take();
        const command = taken instanceof Promise ? await taken : taken;
        ({ id } = command);
        // A repeated id is refused only when it is the command's turn, so that the first command with this id is answered before.
        if (!(isNew ?? this.#remember(id))) throw reused(id);
        await this.#do(id, command.body);
      } catch (cause) {
        this.#refuse(id, cause);
      } finally {
        this.#waiting--;
        this.#bytes -= length;
        if (this.#waiting === 0) this.#rest();
      }
    });
  }

  /** Remembers the id. Returns false if an earlier command had it. */
  #remember(id: CommandId): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size <= IDS) return true;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      break;
    }
    return true;
  }
}

const reused = (id: CommandId): ServiceError =>
  invalidField("id", `${JSON.stringify(id)} is that of an earlier command on this socket`);

/** @throws ServiceError `validation.failed` */
function idOf(id: unknown): CommandId {
  if (typeof id === "string" && id.length > 0 && id.length <= MAX_ID_CHARACTERS) return id;
  if (typeof id === "number" && Number.isSafeInteger(id)) return id;
  throw invalidField("id", `must be a whole number, or a string of 1 to ${MAX_ID_CHARACTERS} characters`);
}
