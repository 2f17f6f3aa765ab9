import { describe, expect, test } from "vitest";
import { isAllowedAddress } from "../../../src/service/webhooks/address-check.ts";
import {
  webhookRetryDelay,
  retryAfter,
  attemptOutcomeOf,
} from "../../../src/service/webhooks/retry-policy.ts";
import { signWebhook } from "../../../src/service/webhooks/signature.ts";
import { checkWebhook, urlRefusal } from "../../../src/service/webhooks/webhook-url-check.ts";
import { parseWebhookPolicy } from "../../../src/config/webhooks.ts";

const strict = parseWebhookPolicy({});
const internal = parseWebhookPolicy({ allow_internal: true });

/** An address; whether a webhook may be sent there by default; and where internal ones are allowed. */
const addresses: readonly (readonly [string, boolean, boolean])[] = [
  ["93.184.216.34", true, true],
  ["2606:4700:4700::1111", true, true],
  // Loopback.
  ["127.0.0.1", false, true],
  ["127.255.255.254", false, true],
  ["10.0.0.1", false, true],
  ["172.16.0.1", false, true],
  ["172.31.255.255", false, true],
  ["172.32.0.1", true, true],
  ["192.168.1.1", false, true],
  ["100.64.0.1", false, true],
  ["100.127.255.255", false, true],
  ["::1", false, true],
  ["fc00::1", false, true],
  ["fdff::1", false, true],
  // An IPv4 address within an IPv6 address.
  ["::ffff:127.0.0.1", false, true],
  ["::ffff:7f00:1", false, true],
  ["::ffff:93.184.216.34", true, true],
  ["::ffff:169.254.169.254", false, false],
  ["64:ff9b::7f00:1", false, false],
  ["64:ff9b::a9fe:a9fe", false, false],
  ["64:ff9b:1::1", false, false],
  ["2002:7f00:1::", false, false],
  ["2002:a9fe:a9fe::1", false, false],
  ["2001:0:7f00:1::", false, false],
  // The metadata services of clouds.
  ["169.254.169.254", false, false],
  ["169.254.170.2", false, false],
  ["100.100.100.200", false, false],
  ["168.63.129.16", false, false],
  ["192.0.0.192", false, false],
  ["fd00:ec2::254", false, false],
  // Unspecified and broadcast addresses.
  ["0.0.0.0", false, false],
  ["0.1.2.3", false, false],
  ["::", false, false],
  ["224.0.0.1", false, false],
  ["239.255.255.250", false, false],
  ["255.255.255.255", false, false],
  ["240.0.0.1", false, false],
  ["198.18.0.1", false, false],
  ["192.0.2.1", false, false],
  ["ff02::1", false, false],
  ["fe80::1", false, false],
  ["fe80::1%eth0", false, false],
  ["fec0::1", false, false],
  ["2001:db8::1", false, false],
  ["3fff::1", false, false],
  ["100::1", false, false],
  ["4000::1", false, false],
  ["not an address", false, false],
  ["", false, false],
];

describe("an address", () => {
  test.each(addresses)("%s: reached %s, where internal ones are allowed %s", (address, open, allowed) => {
    expect([isAllowedAddress(address, false), isAllowedAddress(address, true)]).toEqual([open, allowed]);
  });
});

const fine = [
  "https://hooks.example.com/x?key=1#part",
  "http://hooks.example.com:8080/",
  "HTTPS://Hooks.Example.COM",
  "http://93.184.216.34/",
  "http://[2606:4700:4700::1111]:81/",
  "https://münchen.example/",
  "/my-route",
  "/my-route?x=1",
];

/** A URL, and a part of the message that refuses it. */
const refused: readonly (readonly [string, string])[] = [
  ["", "absolute http"],
  ["hooks.example.com", "absolute http"],
  ["ftp://example.com/", "absolute http"],
  ["file:///etc/passwd", "absolute http"],
  ["javascript:alert(1)", "absolute http"],
  ["http://", "absolute http"],
  ["http:example.com", "absolute http"],
  ["http://exa mple.com/", "spaces"],
  ["http://example.com/\n", "spaces"],
  ["\thttp://example.com/", "spaces"],
  ["http://example.com\\@127.0.0.1/", "backslashes"],
  ["http://example.com:99999/", "absolute http"],
  ["http://user@example.com/", "user name"],
  ["http://:secret@example.com/", "user name"],
  ["http://example.com@127.0.0.1/", "user name"],
  ["//evil.example/", "path on this server"],
  [`https://example.com/${"x".repeat(4096)}`, "4096 characters"],
  // Other spellings of internal addresses.
  ["http://127.0.0.1/", "not public"],
  ["http://127.1/", "not public"],
  ["http://2130706433/", "not public"],
  ["http://0x7f000001/", "not public"],
  ["http://0x7f.0.0.1/", "not public"],
  ["http://0177.0.0.1/", "not public"],
  ["http://017700000001/", "not public"],
  ["http://127.0.0.1./", "not public"],
  ["http://①②⑦.0.0.1/", "not public"],
  ["http://%31%32%37.0.0.1/", "not public"],
  ["http://[::1]/", "not public"],
  ["http://[0:0:0:0:0:0:0:1]/", "not public"],
  ["http://[::ffff:127.0.0.1]/", "not public"],
  ["http://[::ffff:a9fe:a9fe]/latest/meta-data", "not public"],
  ["http://169.254.169.254/latest/meta-data", "not public"],
  ["http://0/", "not public"],
  ["http://localhost/", "not public"],
  ["http://LOCALHOST:3000/", "not public"],
  ["http://localhost./", "not public"],
  ["http://a.localhost/", "not public"],
];

describe("a webhook", () => {
  test.each(fine)("%s may be", (url) => {
    expect(urlRefusal(strict, url)).toBeUndefined();
  });

  test.each(refused)("%s may not be", (url, said) => {
    expect(urlRefusal(strict, url)).toContain(said);
  });

  test("is refused under its field, and never repeated: it may hold a secret", () => {
    const check = () => checkWebhook(strict, "http://me:hunter2@example.com/?token=hunter3");
    expect(check).toThrow(
      expect.objectContaining({
        code: "validation.failed",
        message: expect.not.stringContaining("hunter"),
        fields: [{ at: "webhook", message: expect.not.stringContaining("hunter") }],
      }),
    );
  });

  test("may be within, where that is allowed, but never where clouds tell their secrets", () => {
    expect(urlRefusal(internal, "http://localhost:3000/")).toBeUndefined();
    expect(urlRefusal(internal, "http://10.1.2.3/")).toBeUndefined();
    expect(urlRefusal(internal, "http://169.254.169.254/")).toContain("not public");
  });

  test.each<[object, string, string | undefined]>([
    [{ require_https: true }, "http://example.com/", "https"],
    [{ require_https: true }, "https://example.com/", undefined],
    [{ require_https: true }, "/own", undefined],
    [{ allowed_ports: [443, 8443] }, "https://example.com/", undefined],
    [{ allowed_ports: [443, 8443] }, "https://example.com:8443/", undefined],
    [{ allowed_ports: [443, 8443] }, "http://example.com/", "port 80"],
    [{ allowed_domains: ["Hooks.example.com", "*.corp.test"] }, "https://hooks.example.com./", undefined],
    [{ allowed_domains: ["hooks.example.com", "*.corp.test"] }, "https://a.b.corp.test/", undefined],
    [{ allowed_domains: ["hooks.example.com", "*.corp.test"] }, "https://corp.test/", "domain"],
    [{ allowed_domains: ["hooks.example.com", "*.corp.test"] }, "https://evilcorp.test/", "domain"],
    [{ allowed_domains: ["hooks.example.com"] }, "https://x.hooks.example.com/", "domain"],
    [{ allowed_domains: ["127.0.0.1"] }, "http://127.0.0.1/", "not public"],
    [{ allowed_domains: [] }, "https://anywhere.example/", undefined],
    [{ disable_loopback: true }, "/own", "turned off"],
    [{ max_url_length: 20 }, "https://example.com/too-long", "20 characters"],
  ])("under %j: %s", (url, webhook, said) => {
    const found = urlRefusal(parseWebhookPolicy({ url }), webhook);
    if (said === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(said);
  });
});

test("a signature is the HMAC-SHA256 of timestamp, dot and body", () => {
  // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
  expect(signWebhook("secret", 1_700_000_000, '{"a":1}')).toBe(
    "v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686",
  );
});

test.each([
  [200, "delivered"],
  [204, "delivered"],
  [301, "never"],
  [302, "never"],
  [400, "never"],
  [401, "again"],
  [404, "again"],
  [408, "again"],
  [410, "never"],
  [422, "never"],
  [429, "again"],
  [500, "again"],
  [501, "never"],
  [503, "again"],
])("an answer of %i means: %s", (status, verdict) => {
  expect(attemptOutcomeOf(status)).toBe(verdict);
});

test("tries move apart, by chance a little more or less, and not beyond six hours", () => {
  const seconds = (failed: number, luck = 0.5, asked = 0) => webhookRetryDelay(failed, luck, asked) / 1000;
  expect([1, 2, 3, 4, 5, 6, 7].map((failed) => seconds(failed))).toEqual([10, 30, 90, 270, 810, 2430, 7290]);
  expect([seconds(1, 0), seconds(1, 1)]).toEqual([8, 12]);
  expect(seconds(99)).toBe(21_600);
  expect(seconds(1, 0.5, 60_000)).toBe(60);
  expect(seconds(1, 0.5, 1e12)).toBe(21_600);
});

test("a receiver may ask to be left alone, in seconds or until a date", () => {
  const now = Date.UTC(2026, 10, 20, 12, 0, 0);
  expect(retryAfter(undefined, now)).toBe(0);
  expect(retryAfter("120", now)).toBe(120_000);
  expect(retryAfter("Fri, 20 Nov 2026 12:01:00 GMT", now)).toBe(60_000);
  expect(retryAfter("Fri, 20 Nov 2026 11:00:00 GMT", now)).toBe(0);
  expect(retryAfter("soon", now)).toBe(0);
});
