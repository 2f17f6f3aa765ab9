import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Ranges of internal addresses; webhooks may reach them only when that is configured. */
const INTERNAL: ReadonlySet<string> = new Set(["loopback", "private", "carrierGradeNat", "uniqueLocal"]);

/** Cloud metadata services outside the link-local range; webhooks may never reach them. */
const METADATA: ReadonlySet<string> = new Set([
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
]);

/** The range of all IPv6 addresses assigned for global use. */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3");

/** True for an IP address, false for a host name. */
export const isAddress = (text: string): boolean => ipaddr.isValid(text);

/**
 * Whether a webhook may be sent to this address. Only addresses of ranges that are known to be public are allowed; with `allowInternal`,
 * also addresses of internal ranges. An IPv6 address that contains an IPv4 address (mapped, NAT64, 6to4, Teredo) is either checked as that
 * IPv4 address or refused.
 */
export function isAllowedAddress(text: string, allowInternal: boolean): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address: Address = ipaddr.process(text);
  if (METADATA.has(address.toString())) return false;
  const range = address.range();
  if (INTERNAL.has(range)) return allowInternal;
  if (range !== "unicast") return false;
  return address.kind() === "ipv4" || (address as ipaddr.IPv6).match(GLOBAL);
}
