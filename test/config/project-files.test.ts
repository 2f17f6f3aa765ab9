import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DockerfileParser } from "dockerfile-ast";
import { describe, expect, onTestFinished, test } from "vitest";
import { writeContainerFiles } from "../../src/cli/container-files.ts";
import { initProject, installedFrom } from "../../src/cli/init.ts";

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "heddle-project-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("heddle init", () => {
  test("makes a project, also in a directory that is not there yet, named after it", () => {
    const root = join(directory(), "deep", "My Agents!");
    const paths = initProject(root);
    expect(paths).toContain(join(root, "graphs/agent.ts"));
    for (const path of paths) expect(readFileSync(path, "utf8")).not.toBe("");
    expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).toMatchObject({ name: "my-agents" });
  });

  test("depends on the file that Heddle was installed from", () => {
    const root = directory();
    initProject(root);
    const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      dependencies: { heddle: string };
    };
    const [, path = ""] = /^file:(.+)/.exec(dependencies.heddle) ?? [];
    expect(join(root, path)).toBe(join(import.meta.dirname, "../.."));
  });

  test.each([
    ["file:../heddle-0.1.0.tgz", "heddle-0.1.0.tgz"],
    ["https://registry.npmjs.org/heddle/-/heddle-0.1.0.tgz", undefined],
  ])("of a package that npm has installed from %s", (resolved, from) => {
    const root = directory();
    const modules = join(root, "project", "node_modules");
    mkdirSync(join(modules, "heddle"), { recursive: true });
    expect(installedFrom(join(modules, "heddle/"))).toBeUndefined();
    const lock = JSON.stringify({ packages: { "node_modules/heddle": { resolved } } });
    writeFileSync(join(modules, ".package-lock.json"), lock);
    expect(installedFrom(join(modules, "heddle/"))).toBe(from && join(root, from));
  });

  test("says what is in its way, where that is a file", () => {
    const root = directory();
    writeFileSync(join(root, "file"), "");
    for (const path of ["file", "file/x"]) {
      expect(() => initProject(join(root, path))).toThrow(
        `The directory ${join(root, path)} cannot be made: `,
      );
    }
  });

  test("writes nothing where one of its files is there, and names all of them", () => {
    const root = directory();
    writeFileSync(join(root, "heddle.json"), "{}");
    writeFileSync(join(root, "README.md"), "mine");
    expect(() => initProject(root)).toThrow(`${root} has heddle.json, README.md already`);
    expect(existsSync(join(root, "package.json"))).toBe(false);
    expect(readFileSync(join(root, "README.md"), "utf8")).toBe("mine");
  });
});

describe("heddle build", () => {
  function project(config: object = {}, files: { readonly [name: string]: string } = {}): string {
    const root = directory();
    mkdirSync(join(root, "graphs"));
    const all = {
      "package.json": JSON.stringify({ dependencies: { heddle: "^0.1.0" } }),
      "graphs/agent.ts": "export default {};",
      "heddle.json": JSON.stringify({ graphs: { agent: "./graphs/agent.ts" }, ...config }),
      ...files,
    };
    for (const [name, text] of Object.entries(all)) writeFileSync(join(root, name), text);
    return root;
  }
  const write = (root: string, options: { compose?: boolean; force?: boolean } = {}) =>
    writeContainerFiles({ config: join(root, "heddle.json"), compose: false, force: false, ...options });

  /** The instructions of the Dockerfile, each with its arguments. */
  function instructions(root: string): [keyword: string, args: string][] {
    const file = DockerfileParser.parse(readFileSync(join(root, "Dockerfile"), "utf8"));
    return file.getInstructions().map((one) => [one.getKeyword(), one.getRawArgumentsContent() ?? ""]);
  }
  const argumentsOf = (root: string, keyword: string) =>
    instructions(root).flatMap(([one, args]) => (one === keyword ? [args] : []));

  test("writes an image of two stages that runs as a non-root user, with a HEALTHCHECK", () => {
    const root = project({}, { "package-lock.json": "{}" });
    expect(write(root).paths).toEqual([join(root, "Dockerfile"), join(root, ".dockerignore")]);
    const keywords = instructions(root).map(([keyword]) => keyword);
    expect(keywords.filter((keyword) => keyword === "FROM")).toHaveLength(2);
    expect(keywords.indexOf("USER")).toBeLessThan(keywords.indexOf("CMD"));
    expect(keywords).toEqual(expect.arrayContaining(["HEALTHCHECK", "VOLUME", "EXPOSE", "STOPSIGNAL"]));
    expect(argumentsOf(root, "USER")).toEqual(["node"]);
    expect(argumentsOf(root, "FROM")).toEqual(["node:24-trixie-slim AS packages", "node:24-trixie-slim"]);
    const command = JSON.parse(argumentsOf(root, "CMD")[0] ?? "") as string[];
    expect(command).toEqual(expect.arrayContaining(["start", "--config", "heddle.json", "--data", "/data"]));
    expect(readFileSync(join(root, ".dockerignore"), "utf8")).toMatch(/^node_modules$[^]*^\.env$/m);
  });

  test("leaves the Dockerfile as it is if a file cannot be written: without .dockerignore, an image has the secrets of .env", () => {
    const root = project({}, { Dockerfile: "mine" });
    mkdirSync(join(root, ".dockerignore"));
    const before = readdirSync(root).toSorted();
    expect(() => write(root, { force: true })).toThrow("EISDIR");
    expect(readFileSync(join(root, "Dockerfile"), "utf8")).toBe("mine");
    expect(readdirSync(root).toSorted()).toEqual(before);
  });

  test.each([
    ["package-lock.json", "npm ci --omit=dev"],
    ["pnpm-lock.yaml", "pnpm install --prod --frozen-lockfile"],
    ["yarn.lock", "yarn install --production --frozen-lockfile"],
    [["yarn.lock", ".yarnrc.yml", ".npmrc"], "yarn workspaces focus --production"],
    [undefined, "npm install --omit=dev"],
  ])("installs what the lock file %j names", (given, command) => {
    const names = given === undefined ? [] : [given].flat();
    const root = project({}, Object.fromEntries(names.map((name) => [name, ""])));
    write(root);
    expect(argumentsOf(root, "RUN")[0]).toContain(command);
    const copied = argumentsOf(root, "COPY")[0]?.split(" ");
    expect(copied?.toSorted()).toEqual(["package.json", ...names, "./"].toSorted());
  });

  test.each(["pnpm-lock.yaml", "yarn.lock"])(
    "installs corepack for %s, which Node has no more from 25 on",
    (lock) => {
      for (const [version, command] of [
        [24, /^corepack enable && /],
        [25, /^npm install --global --force corepack && corepack enable && /],
      ] as const) {
        const root = project({ node_version: version }, { [lock]: "" });
        write(root);
        expect(argumentsOf(root, "RUN")[0]).toMatch(command);
      }
    },
  );

  test.each([
    ["20", 22, false],
    ["lts", 24, false],
    ["22", 22, true],
    [26, 26, true],
    [undefined, 24, true],
  ])(
    "takes the version of Node that the configuration names, or says why not: %s",
    (asked, version, isTaken) => {
      const root = project(asked === undefined ? {} : { node_version: asked });
      const path = join(root, "heddle.json");
      const why = `the image has Node ${version}, since it takes a number from 22 on`;
      const note = `${path}: node_version is ${JSON.stringify(asked)}; ${why}`;
      expect(write(root).notes).toEqual(isTaken ? [] : [note]);
      expect(argumentsOf(root, "FROM")[1]).toBe(`node:${version}-trixie-slim`);
    },
  );

  test("copies dependencies that are files or folders of the project before it installs", () => {
    const dependencies = { heddle: "file:vendor/heddle 1.tgz", tools: "file:./tools", far: "^1.0.0" };
    const packageFile = JSON.stringify({ dependencies, optionalDependencies: { extra: "file:extra.tgz" } });
    const root = project({}, { "package-lock.json": "{}", "package.json": packageFile });
    write(root);
    const all = instructions(root);
    const install = all.findIndex(([keyword]) => keyword === "RUN");
    expect(all.slice(0, install).filter(([keyword]) => keyword === "COPY")).toEqual([
      ["COPY", "package.json package-lock.json ./"],
      ["COPY", '["vendor/heddle 1.tgz","./vendor/heddle 1.tgz"]'],
      ["COPY", '["tools","./tools"]'],
      ["COPY", '["extra.tgz","./extra.tgz"]'],
    ]);
  });

  test.each(["../heddle.tgz", "/srv/heddle.tgz", "."])(
    "refuses a dependency that no build could read: %s",
    (path) => {
      const packageFile = JSON.stringify({ dependencies: { heddle: `file:${path}` } });
      const root = project({}, { "package.json": packageFile });
      expect(() => write(root)).toThrow(`heddle is ${path}, which is not within the project`);
      expect(existsSync(join(root, "Dockerfile"))).toBe(false);
    },
  );

  test.each([
    ["../heddle.tgz", 'mkdir -p vendor && cp "../heddle.tgz" vendor/ && npm install ./vendor/heddle.tgz'],
    [
      "..",
      'mkdir -p vendor && npm pack ".." --pack-destination vendor && npm install ./vendor/my-tools-*.tgz',
    ],
  ])("names the command that copies a dependency outside of the project into it: %s", (path, command) => {
    const dependencies = { heddle: "^1.0.0", "@my/tools": `file:${path}` };
    const root = project({}, { "package.json": JSON.stringify({ dependencies }) });
    expect(() => write(root)).toThrow(`put it there: ${command}`);
  });

  test("includes the configuration's own lines before USER node", () => {
    const root = project({ dockerfile_lines: ["RUN apt-get update", "ENV A=b"] });
    write(root);
    const all = instructions(root);
    const place = (keyword: string, args: string) =>
      all.findIndex(([one, of]) => one === keyword && of === args);
    expect(place("RUN", "apt-get update")).toBeGreaterThan(0);
    expect(place("ENV", "A=b")).toBeLessThan(place("USER", "node"));
  });

  test("writes a compose file where asked, and replaces nothing unless told to", () => {
    const root = project({}, { Dockerfile: "mine" });
    expect(() => write(root, { compose: true })).toThrow("has Dockerfile already; --force replaces that");
    expect(existsSync(join(root, "compose.yaml"))).toBe(false);
    expect(write(root, { compose: true, force: true }).paths).toContain(join(root, "compose.yaml"));
    expect(readFileSync(join(root, "compose.yaml"), "utf8")).toContain("read_only: true");
    expect(readFileSync(join(root, "Dockerfile"), "utf8")).toContain("FROM node:");
  });

  test.each([
    ["a key", {}, ":?set it"],
    ["none, as its users have credentials of their own", { auth: { path: "./auth.ts:auth" } }, ":-}"],
  ])("a compose file that needs %s", (_, config, needed) => {
    const root = project(config, { "auth.ts": "" });
    write(root, { compose: true });
    expect(readFileSync(join(root, "compose.yaml"), "utf8")).toContain(`\${HEDDLE_API_KEYS${needed}`);
  });

  test("puts an empty file in place of the .env file, which stays out of the image", () => {
    const root = project({ env: "./settings/production.env" });
    mkdirSync(join(root, "settings"));
    writeFileSync(join(root, "settings/production.env"), "SECRET=1");
    write(root);
    expect(argumentsOf(root, "RUN")).toContain("mkdir -p settings && touch settings/production.env");
    expect(readFileSync(join(root, ".dockerignore"), "utf8")).toMatch(/^settings\/production\.env$/m);
  });

  test("asks for its health below the prefix of all paths", () => {
    const root = project({ http: { mount_prefix: "/api" } });
    write(root);
    expect(argumentsOf(root, "HEALTHCHECK")[0]).toContain("127.0.0.1:2024/api/ok");
  });

  test.each([
    ["a package.json", (root: string) => rmSync(join(root, "package.json")), "there is no"],
    [
      "heddle among its dependencies",
      (root: string) => writeFileSync(join(root, "package.json"), "{}"),
      "does not name heddle",
    ],
    [
      "lines for the Dockerfile as a list",
      (root: string) =>
        writeFileSync(
          join(root, "heddle.json"),
          JSON.stringify({ graphs: { agent: "./graphs/agent.ts" }, dockerfile_lines: "RUN x" }),
        ),
      "dockerfile_lines must be a list of texts",
    ],
  ])("needs %s", (_, spoil, message) => {
    const root = project();
    spoil(root);
    expect(() => write(root)).toThrow(message);
    expect(existsSync(join(root, "Dockerfile"))).toBe(false);
  });
});
