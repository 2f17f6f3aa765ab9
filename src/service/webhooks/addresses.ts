import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Where one's own machines are: open to webhooks when that is configured. */
const INTERNAL: ReadonlySet<string> = new Set(["loopback", "private", "carrierGradeNat", "uniqueLocal"]);

/** Where clouds tell a machine its secrets, beside the link-local addresses: never open. */
const METADATA: ReadonlySet<string> = new Set([
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
]);

/** All IPv6 addresses that have been given out to be reached from anywhere. */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3");

/** Is it an IP address, and no name? */
export const isAddress = (text: string): boolean => ipaddr.isValid(text);

/**
 * May a webhook go to this address? Only to what is known to be public, so that a range which nobody has thought of stays
 * closed; an IPv6 address that stands for an IPv4 one (mapped, NAT64, 6to4, Teredo) is either judged as that or refused.
 */
export function mayReach(text: string, allowInternal: boolean): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address: Address = ipaddr.process(text);
  if (METADATA.has(address.toString())) return false;
  const range = address.range();
  if (INTERNAL.has(range)) return allowInternal;
  if (range !== "unicast") return false;
  return address.kind() === "ipv4" || (address as ipaddr.IPv6).match(GLOBAL);
}
