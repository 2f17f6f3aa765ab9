import { invalidField } from "../../model/errors.ts";
import { parseUrl } from "../../model/url.ts";
import type { WebhookPolicy } from "../../model/webhook-policy.ts";
import { isAddress, isAllowedAddress } from "./address-check.ts";

/** @throws ServiceError `validation.failed`, naming the field, when the webhook is not allowed */
export function checkWebhook(policy: WebhookPolicy, webhook: string): void {
  const message = urlRefusal(policy, webhook);
  if (message !== undefined) throw invalidField("webhook", message);
}

/**
 * The reason to refuse the URL of a webhook, judged by the text of the URL alone; undefined when there is none. The reason never contains
 * the URL, because the URL may contain a secret.
 */
export function urlRefusal(policy: WebhookPolicy, webhook: string): string | undefined {
  if (webhook.length > policy.maxUrlLength)
    return `must not have more than ${policy.maxUrlLength} characters`;
  // A URL parser drops or replaces these characters, so the webhook would go to another URL than the text
  // shows.
  if (/[\p{Cc}\s\\]/u.test(webhook)) return "must not hold spaces, control characters or backslashes";
  if (webhook.startsWith("/")) return refusalOfPath(policy, webhook);
  const url = /^https?:\/\//i.test(webhook) ? parseUrl(webhook) : undefined;
  if (url === undefined) {
    return policy.ownPaths
      ? "must be an absolute http or https URL, or a path on this server"
      : "must be an absolute http or https URL";
  }
  return refusalOfUrl(policy, url);
}

function refusalOfPath({ ownPaths }: WebhookPolicy, path: string): string | undefined {
  if (!ownPaths) return "must be an absolute http or https URL: paths on this server are turned off";
  return path.startsWith("//") || parseUrl(path, "http://self") === undefined
    ? "must be a path on this server"
    : undefined;
}

function refusalOfUrl(policy: WebhookPolicy, url: URL): string | undefined {
  const { protocol, username, password } = url;
  if (username !== "" || password !== "") return "must not hold a user name or password";
  if (policy.requireHttps && protocol !== "https:") return "must be an https URL";
  const port = url.port === "" ? (protocol === "https:" ? 443 : 80) : Number(url.port);
  if (policy.ports !== null && !policy.ports.includes(port)) return `must not name port ${port}`;
  const name = hostOf(url);
  if (policy.domains !== null && !policy.domains.some((domain) => covers(domain, name))) {
    return "is not at a domain that is allowed";
  }
  const open = isAddress(name)
    ? isAllowedAddress(name, policy.allowInternal)
    : policy.allowInternal || !isLocal(name);
  return open ? undefined : NOT_PUBLIC_REASON;
}

export const NOT_PUBLIC_REASON =
  "leads to an address that is not public; see webhooks.allow_internal in the configuration";

const isLocal = (name: string): boolean => name === "localhost" || name.endsWith(".localhost");

const covers = (domain: string, name: string): boolean =>
  domain.startsWith("*.") ? name.endsWith(domain.slice(1)) && name.length >= domain.length : name === domain;

/** The host of a URL, as a name or an address: without brackets, without a dot at the end. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname.replace(/\.$/, "");
}
