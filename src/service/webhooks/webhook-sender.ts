import { ServiceError } from "../../model/errors.ts";
import type { DeliveryContent } from "../../model/webhook-delivery.ts";
import type { WebhookPolicy } from "../../model/webhook-policy.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HttpClient } from "../../ports/http-client.ts";
import type { OutboxEntry } from "../../ports/outbox.ts";
import type { Headers } from "../../ports/transport.ts";
import { isAddress, isAllowedAddress } from "./address-check.ts";
import { retryAfter, attemptOutcomeOf } from "./retry-policy.ts";
import { signWebhook } from "./signature.ts";
import { hostOf, NOT_PUBLIC_REASON, urlRefusal } from "./webhook-url-check.ts";
import { toIso } from "../../model/time.ts";
import { apiRun } from "../api-records.ts";

/** The body of a delivery: the run's record as the API shows it, and its result. */
function payloadOf({ run, values, waiting }: DeliveryContent, now: number): string {
  return JSON.stringify({
    ...apiRun(run, { isRunning: false, position: undefined }),
    run_started_at: run.started_at === null ? null : toIso(run.started_at),
    run_ended_at: run.ended_at === null ? null : toIso(run.ended_at),
    webhook_sent_at: toIso(now),
    values,
    // The pending interrupts of a paused run. They tell the receiver that the run is paused and not finished, because both have the same
    // status.
    ...(waiting !== null && { interrupts: waiting }),
    ...(run.error !== null && { error: run.error.message }),
  });
}

export type AttemptOutcome =
  | { readonly kind: "delivered" }
  | {
      readonly kind: "again" | "never";
      /** The status of the receiver's response; null when there was no response. */
      readonly status: number | null;
      readonly error: string;
      /** Milliseconds that the receiver requested before the next attempt; 0 if it requested none. */
      readonly asked: number;
    };

export interface SenderDeps {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly policy: WebhookPolicy;
  /** Heddle's own version. */
  readonly version: string;
}

/** The maximum number of characters of an error's text that are stored and shown. */
const MAX_ERROR_CHARACTERS = 300;

/**
 * Makes one delivery attempt. The policy is checked again, for the URL and, unless the webhook is a path on this server, for the addresses
 * to which the URL's host name resolves now. The connection goes to one of these addresses. `self`: the URL of this server.
 */
export async function sendWebhook(
  { client, clock, policy, version }: SenderDeps,
  { id, delivery }: OutboxEntry,
  content: DeliveryContent,
  self: URL,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const wrong = urlRefusal(policy, delivery.url);
  if (wrong !== undefined) return never(null, `The URL ${wrong}`);
  const own = delivery.url.startsWith("/");
  const url = own ? new URL(delivery.url, self) : new URL(delivery.url);
  url.hash = "";
  try {
    const addresses = await addressesOf(client, hostOf(url), signal);
    if (!own && !addresses.every((address) => isAllowedAddress(address, policy.allowInternal))) {
      return never(null, `The URL ${NOT_PUBLIC_REASON}`);
    }
    // Each attempt uses the next address, because one of them may not work.
    const address = addresses[delivery.attempts % addresses.length];
    if (address === undefined) throw new Error("its name has no address");
    const body = payloadOf(content, clock.now());
    const headers = headersOf(policy, version, id, delivery.attempts + 1, body, clock.now());
    const answer = await client.post({ url, address, headers, body, signal });
    const verdict = attemptOutcomeOf(answer.status);
    if (verdict === "delivered") return { kind: "delivered" };
    const error = `The receiver answered ${answer.status}`;
    if (verdict === "never") return never(answer.status, error);
    const asked = retryAfter(answer.retryAfter, clock.now());
    return { kind: "again", status: answer.status, error, asked };
  } catch (thrown) {
    // An error of Heddle's own storage is not a failure of the receiver, so it does not count as an attempt.
    if (thrown instanceof ServiceError) throw thrown;
    return { kind: "again", status: null, error: textOf(signal.aborted ? signal.reason : thrown), asked: 0 };
  }
}

const never = (status: number | null, error: string): AttemptOutcome => ({
  kind: "never",
  status,
  error,
  asked: 0,
});

/** The addresses of a host name. IPv4 addresses come first, because nearly all networks support IPv4. */
async function addressesOf(
  client: HttpClient,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (isAddress(name)) return [name];
  const found = await client.resolve(name, signal);
  return found.toSorted((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

function headersOf(
  { headers, secret }: WebhookPolicy,
  version: string,
  id: string,
  attempt: number,
  body: string,
  now: number,
): Headers {
  const timestamp = Math.floor(now / 1000);
  return {
    "user-agent": `heddle/${version}`,
    ...headers,
    "content-type": "application/json",
    "x-webhook-id": id,
    "x-webhook-attempt": String(attempt),
    "x-webhook-timestamp": String(timestamp),
    ...(secret !== null && { "x-webhook-signature": signWebhook(secret, timestamp, body) }),
  };
}

function textOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
  return text.slice(0, MAX_ERROR_CHARACTERS);
}
