import { ServiceError } from "../model/errors.ts";

/** The largest encoded value in bytes. Before Node 24, `Buffer.write` silently writes nothing into a larger buffer. */
export const MAX_ENCODED_BYTES = 2 ** 31 - 1;
/** @throws ServiceError `value.unstorable` */
export function throwValueTooLarge(): never {
  throw new ServiceError(
    "value.unstorable",
    "A value of more than 2 GiB cannot be stored: store it outside the state",
  );
}

/** @throws ServiceError `value.unstorable` */
export function throwTextTooLong(): never {
  throw new ServiceError(
    "value.unstorable",
    "A text of more than 512 MiB cannot be stored: store it outside the state",
  );
}
