import { createHmac } from "node:crypto";

/** The signature of a delivery: HMAC-SHA256 over `<timestamp>.<body>`. `timestamp` is in seconds. */
export function signWebhook(secret: string, timestamp: number, body: string): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}
