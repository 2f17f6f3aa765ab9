import { describe, expect, test } from "vitest";
import { HELP } from "../../src/cli/command-line.ts";
import { ENVIRONMENT_VARIABLES, warningsOfVariables } from "../../src/cli/environment-variables.ts";

describe("variables that begin with HEDDLE_", () => {
  test("those of the help, and no others, are known", () => {
    const listed = new Set(HELP.match(/HEDDLE_[A-Z_]+/g));
    // `heddle inspect` sends this key.
    listed.delete("HEDDLE_API_KEY");
    expect([...listed].toSorted()).toEqual(ENVIRONMENT_VARIABLES.toSorted());
    const env = Object.fromEntries(ENVIRONMENT_VARIABLES.map((name) => [name, "1"]));
    expect(warningsOfVariables({ ...env, PORT: "1", HEDDLEX: "1", PATH: undefined })).toEqual([]);
  });

  test.each([
    ["HEDDLE_PROT", "HEDDLE_PORT"],
    ["HEDDLE_WORKER", "HEDDLE_WORKERS"],
    ["HEDDLE_APIKEYS", "HEDDLE_API_KEYS"],
    ["HEDDLE_DATA_DIR", "HEDDLE_DATA"],
    ["HEDDLE_LOG_LEVEL", "HEDDLE_LOG"],
    ["HEDDLE_CORS_ORIGINS", "HEDDLE_CORS_ALLOW_ORIGINS"],
    ["HEDDLE_WEBHOOKS_SECRET", "HEDDLE_WEBHOOK_SECRET"],
  ])("%s is told with the name that was meant, and without its value", (name, meant) => {
    expect(warningsOfVariables({ [name]: "sesame" })).toEqual([
      `${name} is none of Heddle's variables; did you mean ${meant}?`,
    ]);
  });

  test("one that is like none is told with where to look", () => {
    expect(warningsOfVariables({ HEDDLE_URL: "http://x" })).toEqual([
      'HEDDLE_URL is none of Heddle\'s variables; "heddle --help" lists them',
    ]);
  });

  test("the key of a client closes no server: only beside the server's own it is not told", () => {
    expect(warningsOfVariables({ HEDDLE_API_KEY: "k" })).toEqual([
      "HEDDLE_API_KEY is none of Heddle's variables; did you mean HEDDLE_API_KEYS?",
    ]);
    expect(warningsOfVariables({ HEDDLE_API_KEY: "k", HEDDLE_API_KEYS: "k" })).toEqual([]);
  });

  test("empty ones are none, and those of Kubernetes are nobody's mistake", () => {
    const env = {
      HEDDLE_PROT: "",
      HEDDLE_SERVICE_HOST: "10.0.0.1",
      HEDDLE_SERVICE_PORT: "2024",
      HEDDLE_SERVICE_PORT_HTTP: "2024",
      HEDDLE_PORT_2024_TCP_ADDR: "10.0.0.1",
      HEDDLE_API_PORT: "tcp://10.0.0.1:2024",
    };
    expect(warningsOfVariables(env)).toEqual([]);
  });
});
