import { ServiceError, invalidField } from "../model/errors.ts";
import type { Eventually } from "../ports/eventually.ts";
import { parseObject, type RawBody } from "../schemas/read-body.ts";

/** The largest number of commands of one socket that have not been answered. */
const MAX_PENDING_COMMANDS = 32;
/** The largest total number of characters of the unanswered commands. A single command may be larger. */
const MAX_PENDING_CHARACTERS = 1024 * 1024;
/**
 * Characters. A longer command is parsed in a separate turn of the event loop, because several large commands in one turn would block all
 * other work.
 */
const LARGE_COMMAND_CHARACTERS = 64 * 1024;
/**
 * The number of command ids that are remembered for one socket. A command with a remembered id is refused, so that a command that the
 * client repeats is not executed twice.
 */
const MAX_REMEMBERED_IDS = 1024;
/** The maximum length of a command id, in characters. */
const MAX_ID_CHARACTERS = 200;

export type CommandId = string | number;

interface Command {
  readonly id: CommandId;
  readonly body: RawBody;
}

/** Executes one command, and answers it when its change is stored. */
type Do = (id: CommandId, body: RawBody) => Promise<void>;

/** Sends an error as the answer to a command that was not executed. `id` is null if the command's id could not be read. */
type Refuse = (id: CommandId | null, cause: unknown) => void;

const busy = new ServiceError(
  "server.busy",
  `More than ${MAX_PENDING_COMMANDS} commands, or 1 MiB of them, are not done yet`,
);

/**
 * The commands of one socket, executed one after the other in the order of their arrival. So a cancellation, for example, finds the run
 * that an earlier command has started. Each command is answered exactly once: when its change is stored, or when it is refused.
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

  /** `turn` resolves when a large command may be parsed. `rest` is called each time no command is pending any more. */
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
        this.#waiting >= MAX_PENDING_COMMANDS ||
        (this.#waiting > 0 && this.#bytes + length > MAX_PENDING_CHARACTERS);
      if (length > LARGE_COMMAND_CHARACTERS) {
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

  /**
   * Adds a command to the queue. `isNew`: whether no earlier command had its id; undefined if the id is not known before the command is
   * parsed.
   */
  #enqueue(length: number, take: () => Eventually<Command>, isNew?: boolean): void {
    this.#waiting++;
    this.#bytes += length;
    this.#last = this.#last.then(async () => {
      let id: CommandId | null = null;
      try {
        const taken = take();
        const command = taken instanceof Promise ? await taken : taken;
        ({ id } = command);
        // A repeated id is refused only when it is the command's turn, so that the earlier command with this id is answered before.
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

  /** Remembers a command id. Returns false if an earlier command had the same id. */
  #remember(id: CommandId): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size <= MAX_REMEMBERED_IDS) return true;
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
