import { createHmac } from "node:crypto";

/** What proves that a try is ours: HMAC-SHA256 over `<timestamp>.<body>`. `timestamp` is in seconds. */
export function sign(secret: string, timestamp: number, body: string): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}
