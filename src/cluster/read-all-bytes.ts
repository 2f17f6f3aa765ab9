import { PeerLost, type PeerResponse } from "../ports/peers.ts";

/** Reads the complete body of a response. @throws PeerLost if the connection ends before the body is complete */
export function readAllBytes(response: PeerResponse): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  return new Promise((resolve, reject) => {
    response.read({
      piece: (bytes) => pieces.push(bytes) > 0,
      end: () => resolve(Buffer.concat(pieces)),
      broken: () => reject(new PeerLost(true, undefined)),
    });
  });
}
