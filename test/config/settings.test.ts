import { describe, expect, test } from "vitest";
import { commandHelp } from "../../src/cli/help.ts";
import { type CommandName, COMMAND_OPTIONS, HELP, parseCommandLine } from "../../src/cli/command-line.ts";

const defaults = { host: "127.0.0.1", data: ".heddle", level: "info" };

const settings = (args: string[], env: Record<string, string> = {}) => {
  const asked = parseCommandLine(["start", ...args], env);
  return asked.command === "start" ? asked.settings(env, ".heddle") : asked;
};

describe("heddle start", () => {
  test("without anything: loopback, no port of its own, .heddle", () => {
    expect(settings([])).toEqual(defaults);
  });

  test("flags win over HEDDLE_*, those over PORT and HOST", () => {
    const env = {
      HEDDLE_PORT: "3000",
      PORT: "4000",
      HEDDLE_HOST: "::1",
      HOST: "127.0.0.2",
      HEDDLE_DATA: "d",
    };
    expect(settings([], { PORT: "4000", HOST: "localhost" })).toMatchObject({
      port: 4000,
      host: "localhost",
    });
    expect(settings([], env)).toEqual({ ...defaults, port: 3000, host: "::1", data: "d" });
    const flags = ["--port", "0", "--host=127.0.0.3", "--data", "e"];
    expect(settings(flags, env)).toEqual({ ...defaults, port: 0, host: "127.0.0.3", data: "e" });
  });

  test("an empty variable is none", () => {
    expect(settings([], { PORT: "", HEDDLE_TRANSPORT: "" })).toEqual(defaults);
  });

  test("what only the environment sets", () => {
    const env = { HEDDLE_MAX_BODY: "1024", HEDDLE_STREAMS_SYNC: "memory", HEDDLE_LOG: "debug" };
    expect(settings([], env)).toEqual({ ...defaults, maxBody: 1024, sync: "memory", level: "debug" });
  });

  test("that other machines may come without a key is told by a flag or the environment", () => {
    expect(settings(["--insecure"])).toEqual({ ...defaults, insecure: true });
    expect(settings([], { HEDDLE_INSECURE: "1" })).toEqual({ ...defaults, insecure: true });
    expect(settings([], { HEDDLE_INSECURE: "0" })).toEqual(defaults);
  });

  test("who may come in", () => {
    const env = {
      HEDDLE_ALLOWED_HOSTS: "a.test, *.b.test",
      CORS_ALLOW_ORIGINS: "https://c.test",
      MOUNT_PREFIX: "/api/",
      HEDDLE_REQUEST_LOG: "info",
    };
    expect(settings([], env)).toEqual({
      ...defaults,
      hosts: ["a.test", "*.b.test"],
      origins: ["https://c.test"],
      mount: "/api",
      requestLog: "info",
    });
    expect(settings([], { MOUNT_PREFIX: "api" })).toMatchObject({
      command: "refused",
      why: 'MOUNT_PREFIX "api" must be a path such as "/api"',
    });
  });

  test.each<[string[], Record<string, string>, string]>([
    [["--prot", "1"], {}, "Unknown option '--prot'; did you mean --port?"],
    [["-x"], {}, "Unknown option '-x'"],
    [["-p"], {}, "--port needs a value"],
    [["-p", "-1"], {}, '--port "-1" is not a whole number from 0 to 65535'],
    [["--port"], {}, "--port needs a value"],
    [["--data", "--port", "1"], {}, "--data needs a value"],
    [["--data", ""], {}, "--data is empty; give it a value, or leave it out"],
    [["--host="], {}, "--host is empty; give it a value, or leave it out"],
    [["--port", "-1"], {}, '--port "-1" is not a whole number from 0 to 65535'],
    [["--workers", "-1"], {}, '--workers "-1" is not a whole number from 0 to 64'],
    [["--port", "http"], {}, '--port "http" is not a whole number from 0 to 65535'],
    [["--port", "1e3"], {}, '--port "1e3" is not'],
    [["--port", "65536"], {}, '--port "65536" is not'],
    [[], { PORT: "-1" }, 'PORT "-1" is not'],
    [["--transport", "deno"], {}, '--transport "deno" is not uws or node'],
    [[], { HEDDLE_MAX_BODY: "0" }, 'HEDDLE_MAX_BODY "0" is not'],
    [[], { HEDDLE_STREAMS_SYNC: "x" }, 'HEDDLE_STREAMS_SYNC "x" is not one of os, memory'],
    [[], { HEDDLE_LOG: "loud" }, 'HEDDLE_LOG "loud" is not'],
    [["--log", "debug"], {}, '--log "debug" is not json or text; HEDDLE_LOG sets the level'],
    [[], { HEDDLE_LOG_FORMAT: "xml" }, 'HEDDLE_LOG_FORMAT "xml" is not'],
    [["now"], {}, '"now" is one argument too many'],
  ])("%j %j is refused by name", (args, env, why) => {
    const refused = settings(args, env);
    expect(refused).toEqual({ command: "refused", why: expect.stringContaining(why) });
    expect(refused).not.toMatchObject({ why: expect.stringContaining("\n") });
  });
});

describe.each([
  ["HEDDLE_HANG_LIMIT", "hangLimitMs"],
  ["HEDDLE_START_LIMIT", "startLimitMs"],
] as const)("the time after which a process that hangs is ended, %s", (variable, name) => {
  test.each([
    ["10000", 10_000],
    ["0", 0],
  ])("%s", (given, ms) => {
    expect(settings([], { [variable]: given })).toEqual({ ...defaults, [name]: ms });
  });

  test.each(["9999", "1m", "-1"])("%s is refused", (given) => {
    expect(settings([], { [variable]: given })).toEqual({
      command: "refused",
      why: expect.stringContaining(
        `${variable} "${given}" is not 0 or a whole number of milliseconds, 10000 or more`,
      ),
    });
  });
});

describe("a cluster", () => {
  const url = "postgres://user:secret@db/heddle";

  test("is named by its database, with what its nodes share", () => {
    const env = {
      HEDDLE_CLUSTER_SECRET: "s",
      HEDDLE_CLUSTER_SCHEMA: "own",
      HEDDLE_CLUSTER_HOST: "a.test",
      HEDDLE_CLUSTER_LEASE: "1500",
      HEDDLE_CLUSTER_SNAPSHOT: "1000000",
    };
    expect(settings(["--cluster", url, "--node", "a", "--shards", "1"], env)).toEqual({
      ...defaults,
      shards: 1,
      cluster: {
        url,
        node: "a",
        secret: "s",
        schema: "own",
        host: "a.test",
        leaseMs: 1_500,
        snapshotBytes: 1_000_000,
      },
    });
    expect(settings([], env)).toEqual(defaults);
    expect(parseCommandLine(["cluster", "status"], { ...env, HEDDLE_CLUSTER: url })).toEqual({
      command: "cluster",
      action: "status",
      place: { url, schema: "own" },
    });
    expect(parseCommandLine(["cluster", "drain", "a", "--cluster", url], env)).toEqual({
      command: "cluster",
      action: "drain",
      node: "a",
      secret: "s",
      place: { url, schema: "own" },
    });
  });

  test.each([
    [["--node", "a"], "name the cluster too"],
    [["--cluster", "mysql://db"], "--cluster names no PostgreSQL database"],
    [["--cluster", url, "--shards", "65"], "from 1 to 64"],
  ])("%j is refused", (args, why) => {
    expect(settings(args)).toMatchObject({ command: "refused", why: expect.stringContaining(why) });
  });

  test.each(["1", "256MB", ""])(
    "HEDDLE_CLUSTER_SNAPSHOT=%s: a number of bytes, not too small, or the default",
    (bytes) => {
      const found = settings(["--cluster", url], { HEDDLE_CLUSTER_SNAPSHOT: bytes });
      if (bytes === "") expect(found).toMatchObject({ cluster: { url } });
      else
        expect(found).toMatchObject({
          command: "refused",
          why: `HEDDLE_CLUSTER_SNAPSHOT "${bytes}" is not a whole number of bytes, 65536 or more`,
        });
    },
  );

  test("its commands need the database, and the node that they are for", () => {
    for (const args of [["cluster"], ["cluster", "stop"]])
      expect(parseCommandLine(args, {})).toMatchObject({
        why: expect.stringContaining("heddle cluster status, drain NODE or undrain NODE"),
      });
    for (const action of ["drain", "undrain"])
      expect(parseCommandLine(["cluster", action], { HEDDLE_CLUSTER: url })).toMatchObject({
        why: `name the node: heddle cluster ${action} NODE`,
      });
    for (const args of [
      ["status", "a"],
      ["drain", "b", "a"],
    ])
      expect(parseCommandLine(["cluster", ...args], { HEDDLE_CLUSTER: url })).toMatchObject({
        why: '"a" is one argument too many',
      });
    expect(parseCommandLine(["cluster", "status"], {})).toMatchObject({
      why: expect.stringContaining("--cluster postgres:"),
    });
  });
});

describe("heddle", () => {
  test.each([[["--help"]], [["-h"]], [["help"]], [["serve", "--help"]]])("%j helps", (args) => {
    expect(parseCommandLine(args, {})).toEqual({ command: "help" });
  });

  test.each([[["backup", "--help"]], [["backup", "to", "-h"]], [["help", "backup"]]])(
    "%j helps with that command",
    (args) => {
      expect(parseCommandLine(args, {})).toEqual({ command: "help", topic: "backup" });
    },
  );

  test.each(Object.keys(COMMAND_OPTIONS) as CommandName[])(
    "the help of %s has its usage and options",
    (command) => {
      const help = commandHelp(command);
      expect(help).toMatch(new RegExp(`^Usage: heddle ${command}\\b.*\\[options\\]\\n`));
      const listed = help.matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm);
      expect([...listed].map(([, name]) => name)).toEqual([...COMMAND_OPTIONS[command], "help"]);
      expect(help.split("\n").filter((line) => line.length > 120)).toEqual([]);
    },
  );

  test("the help of a command says the same as that of all commands", () => {
    const oneLine = (text: string) => text.replaceAll(/\s+/g, " ");
    const all = oneLine(HELP);
    const described = commandHelp("start").matchAll(/^ {2}(?:-\w, )?--(?!help).*\n(?: {9,}.*\n)*/gm);
    const options = [...described].map(([text]) => oneLine(text).trim());
    expect(options).toHaveLength(COMMAND_OPTIONS.start.length);
    for (const option of options) expect(all).toContain(option);
    expect(oneLine(commandHelp("build"))).toContain("Write a Dockerfile and a .dockerignore");
    expect(oneLine(commandHelp("cluster"))).toContain("heddle cluster undrain NODE Let a drained node");
  });

  test("--version asks for the version, nothing and the unknown are refused", () => {
    expect(parseCommandLine(["--version"], {})).toEqual({ command: "version" });
    const commands = "init, build, dev, start, cluster, check, repair, backup, inspect, conformance, prove";
    expect(parseCommandLine([], {})).toEqual({ command: "refused", why: `name a command: ${commands}` });
    expect(parseCommandLine(["serve"], {})).toMatchObject({
      why: `there is no command "serve"; there are: ${commands}`,
    });
  });

  test("each command takes its own flags and arguments alone", () => {
    expect(parseCommandLine(["check"], {})).toEqual({ command: "check", data: ".heddle" });
    expect(parseCommandLine(["repair", "--data", "d"], {})).toEqual({
      command: "repair",
      data: "d",
      accept: false,
    });
    expect(parseCommandLine(["repair", "--accept"], {})).toMatchObject({ command: "repair", accept: true });
    expect(parseCommandLine(["backup", "to"], { HEDDLE_DATA: "d" })).toEqual({
      command: "backup",
      data: "d",
      target: "to",
    });
    expect(parseCommandLine(["check", "--port", "1"], {})).toMatchObject({
      why: "heddle check takes no --port",
    });
    expect(parseCommandLine(["check", "d"], {})).toMatchObject({ why: '"d" is one argument too many' });
    for (const command of ["check", "repair", "backup"])
      expect(parseCommandLine([command, "--data", ""], {})).toMatchObject({
        why: "--data is empty; give it a value, or leave it out",
      });
    expect(parseCommandLine(["inspect", "--relay", "-1"], {})).toMatchObject({
      why: '--relay "-1" is not a whole number from 0 to 65535',
    });
    expect(parseCommandLine(["backup"], {})).toMatchObject({
      why: expect.stringContaining("heddle backup DIR"),
    });
    expect(parseCommandLine(["dev", "--config", "c.json"], {})).toMatchObject({
      command: "dev",
      config: "c.json",
    });
  });

  test("heddle dev takes the options of the official command line, and says which have no effect", () => {
    const officialArgs = ["-c", "./app", "-p", "8123", "--host", "::1", "-n", "4", "--no-browser"];
    const asked = parseCommandLine(["dev", ...officialArgs, "--no-reload", "--studio-url", "x"], {});
    expect(asked).toMatchObject({ command: "dev", config: "./app", concurrent: 4 });
    if (asked.command !== "dev") throw new Error(asked.command);
    expect(asked.settings({}, ".heddle")).toMatchObject({ port: 8123, host: "::1" });
    expect(asked.notes).toEqual([
      "--no-browser is ignored: Heddle opens no browser",
      '--no-reload is ignored: "heddle start" serves without reloading',
      expect.stringContaining("--studio-url is ignored: "),
    ]);
    const others = ["--debug-port", "1", "--wait-for-client", "--allow-blocking"];
    expect(parseCommandLine(["dev", ...others], {})).toMatchObject({
      notes: ["--debug-port", "--wait-for-client", "--allow-blocking"].map((option) =>
        expect.stringContaining(`${option} is ignored: `),
      ),
    });
    expect(parseCommandLine(["dev"], {})).toMatchObject({ notes: [] });
    expect(parseCommandLine(["dev", "-n", "0"], {})).toMatchObject({
      why: '--n-jobs-per-worker "0" is not a whole number, 1 or more',
    });
    expect(parseCommandLine(["dev", "--tunnel"], {})).toMatchObject({
      why: expect.stringContaining("cloudflared tunnel --url"),
    });
    expect(parseCommandLine(["start", "--no-browser"], {})).toMatchObject({
      why: "heddle start takes no --no-browser",
    });
  });

  test("what a file adds to the environment counts there; where data goes is the command's to say", () => {
    const asked = parseCommandLine(["dev", "--port", "1"], {});
    if (asked.command !== "dev") throw new Error(asked.command);
    expect(asked.settings({ HEDDLE_PORT: "2", HEDDLE_LOG: "debug" }, "here")).toMatchObject({
      port: 1,
      level: "debug",
      data: "here",
    });
    expect(() => asked.settings({ HEDDLE_LOG: "loud" }, "here")).toThrow('HEDDLE_LOG "loud" is not');
  });

  test("the help names the exit codes", () => {
    expect(HELP).toMatch(/^Exit codes\n {2}0 .*\n {2}1 .*check.*repair.*\n {2}2 /m);
  });

  test("the help names every flag that is taken", () => {
    expect(HELP).toContain("--log");
    for (const flag of ["config", "host", "port", "data", "transport", "insecure"]) {
      expect(HELP).toContain(`--${flag}`);
      expect(HELP).toContain(`HEDDLE_${flag.toUpperCase()}`);
    }
  });
});
