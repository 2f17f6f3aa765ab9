import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { parseWebhookPolicy } from "../../src/config/webhooks.ts";

const home = mkdtempSync(join(tmpdir(), "heddle-config-"));
afterAll(() => rmSync(home, { recursive: true }));
const path = join(home, "heddle.json");

function read(webhooks: unknown, more: object = {}, environment: Record<string, string> = {}) {
  writeFileSync(path, JSON.stringify({ graphs: {}, webhooks, ...more }));
  return readConfig(path, environment).webhooks ?? {};
}

describe("the section webhooks", () => {
  test("says all that it can; what it leaves open has a default", () => {
    expect(parseWebhookPolicy({})).toEqual({
      allowInternal: false,
      secret: null,
      headers: {},
      timeout: 10_000,
      attempts: 8,
      requireHttps: false,
      domains: null,
      ports: null,
      ownPaths: true,
      maxUrlLength: 4096,
    });
    const given = {
      allow_internal: true,
      secret: "s",
      headers: { "X-Team": "a" },
      timeout: 2.5,
      attempts: 3,
      url: {
        require_https: true,
        allowed_domains: ["Hooks.Test", "*.corp.test"],
        allowed_ports: [443],
        disable_loopback: true,
        max_url_length: 100,
      },
    };
    expect(parseWebhookPolicy(read(given))).toEqual({
      allowInternal: true,
      secret: "s",
      headers: { "x-team": "a" },
      timeout: 2_500,
      attempts: 3,
      requireHttps: true,
      domains: ["hooks.test", "*.corp.test"],
      ports: [443],
      ownPaths: false,
      maxUrlLength: 100,
    });
  });

  test("fills variables into headers, the environment's before the file's", () => {
    const headers = {
      Authorization: "Bearer ${{ env.LG_WEBHOOK_A }}",
      "X-Two": "${{env.LG_WEBHOOK_A}}-${{ env.LG_WEBHOOK_B }}",
    };
    const env = { LG_WEBHOOK_A: "file", LG_WEBHOOK_B: "b" };
    expect(read({ headers }, { env }, { LG_WEBHOOK_A: "own" })["headers"]).toEqual({
      Authorization: "Bearer own",
      "X-Two": "own-b",
    });
    const own = read({ headers: { A: "${{ env.MY_A }}" }, env_prefix: "MY_" }, {}, { MY_A: "1" });
    expect(own["headers"]).toEqual({ A: "1" });
  });

  test.each<[unknown, string]>([
    ["x", "webhooks must be an object"],
    [{ allow_internal: "yes" }, "webhooks.allow_internal must be true or false"],
    [{ secret: "" }, "webhooks.secret must be"],
    [{ timeout: 0 }, "webhooks.timeout must be a number"],
    [{ timeout: "10s" }, "webhooks.timeout must be a number"],
    [{ attempts: 1.5 }, "webhooks.attempts must be a whole number"],
    [{ attempts: 0 }, "webhooks.attempts must be"],
    [{ headers: ["a"] }, "webhooks.headers must be an object"],
    [{ headers: { "a b": "c" } }, "webhooks.headers.a b is no name"],
    [{ headers: { Host: "c" } }, "webhooks.headers.Host cannot be set"],
    [{ headers: { "X-Webhook-Signature": "c" } }, "cannot be set"],
    [{ headers: { a: 1 } }, "webhooks.headers.a must be one line"],
    [{ headers: { a: "b\r\nc: d" } }, "webhooks.headers.a must be one line"],
    [
      { headers: { a: "${{ env.HOME }}" } },
      "webhooks.headers.a names HOME, which does not begin with LG_WEBHOOK_",
    ],
    [{ headers: { a: "${{ env.LG_WEBHOOK_X }}" } }, "names LG_WEBHOOK_X, which is not set"],
    [{ env_prefix: "" }, "webhooks.env_prefix must be"],
    [{ url: [] }, "webhooks.url must be an object"],
    [{ url: { require_https: 1 } }, "webhooks.url.require_https must be"],
    [{ url: { allowed_domains: "a" } }, "webhooks.url.allowed_domains must be a list"],
    [{ url: { allowed_domains: ["a.*"] } }, "webhooks.url.allowed_domains must be a list"],
    [{ url: { allowed_domains: ["http://a"] } }, "webhooks.url.allowed_domains must be a list"],
    [{ url: { allowed_ports: [0] } }, "webhooks.url.allowed_ports"],
    [{ url: { allowed_ports: 443 } }, "webhooks.url.allowed_ports must be a list"],
    [{ url: { max_url_length: 0 } }, "webhooks.url.max_url_length must be"],
  ])("%j is refused by name", (webhooks, message) => {
    expect(() => read(webhooks)).toThrow(
      expect.objectContaining({ code: "config.invalid", message: expect.stringContaining(`${path}: `) }),
    );
    expect(() => read(webhooks)).toThrow(message);
  });
});

test("the secret may come from the environment", () => {
  const env = { HEDDLE_WEBHOOK_SECRET: "s3" };
  const asked = parseCommandLine(["start"], env);
  if (asked.command !== "start") throw new Error(asked.command);
  expect(asked.settings(env, ".heddle")).toMatchObject({ webhooks: { secret: "s3" } });
});
