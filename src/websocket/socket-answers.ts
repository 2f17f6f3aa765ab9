import { packForClients } from "../codec/value-encoding.ts";
import type { JsonObject } from "../model/json.ts";
import { failureDetailsOf } from "../schemas/error-to-response.ts";
import type { CommandId } from "./command-queue.ts";

/** Encodes a message that is not an event. `packed`: as MessagePack instead of JSON text. */
export const encodeAnswer = (packed: boolean, answer: JsonObject): string | Uint8Array =>
  packed ? packForClients(answer) : JSON.stringify(answer);

/** The answer to a failed command. `id` is null if the command's id is unknown, or if the error concerns the whole socket. */
export function errorAnswerOf(id: CommandId | null, cause: unknown): JsonObject {
  const { status, body } = failureDetailsOf(cause);
  return { type: "error", id, status, ...body };
}
