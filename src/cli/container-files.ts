import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join, posix, relative, resolve } from "node:path";
import { configFileAt, readConfig } from "../config/config.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { ServiceError } from "../model/errors.ts";

export interface ContainerOptions {
  /** The path of the configuration file. Default: the configuration file in the current directory. */
  readonly config?: string | undefined;
  /** Whether to write a compose file too. */
  readonly compose: boolean;
  /** Whether to replace files that exist. */
  readonly force: boolean;
}

/** The major version of Node in images if the configuration names none. */
const DEFAULT_NODE = 24;
const OLDEST_NODE = 22;
/** From this major version on, Node comes without corepack, which installs the package manager that a project names. */
const NODE_WITHOUT_COREPACK = 25;
/** The port on which the server listens in the container. */
const PORT = 2024;

/** Install commands by lock file. If the project has no `yarn.lock`, the first of these files that exists decides. */
const INSTALLS: readonly (readonly [lock: string, command: string])[] = [
  ["package-lock.json", "npm ci --omit=dev --no-audit --no-fund"],
  ["npm-shrinkwrap.json", "npm ci --omit=dev --no-audit --no-fund"],
  ["pnpm-lock.yaml", "pnpm install --prod --frozen-lockfile"],
];
/** Yarn 1 and later versions need different options. Only the later versions have the configuration file `.yarnrc.yml`. */
const YARN_1 = "yarn install --production --frozen-lockfile";
const YARN = "yarn workspaces focus --production";
/** Files that affect what is installed, in addition to package.json and the lock file. */
const SETTINGS_FILES = [".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml"];
const INSTALL_WITHOUT_LOCK = "npm install --omit=dev --no-audit --no-fund";

export interface WrittenContainerFiles {
  readonly paths: readonly string[];
  /** Warnings about differences between the image and what the configuration asks for. */
  readonly notes: readonly string[];
}

/**
 * Writes a Dockerfile and a `.dockerignore` into the directory of the configuration file, and a compose file if `compose` is set. If it
 * throws a ServiceError, it has written no file. There is never a new Dockerfile without its `.dockerignore`, which keeps the project's
 * secrets out of the image.
 * @throws ServiceError `config.invalid` if the configuration is wrong; if the project has no package.json, does not depend on heddle, or
 *   depends on files outside its directory; or if a file exists and `force` is not set
 */
export function writeContainerFiles({ config, compose, force }: ContainerOptions): WrittenContainerFiles {
  const read = readConfig(configFileAt(config));
  const { path } = read;
  const root = dirname(path);
  const packageFile = join(root, "package.json");
  if (!existsSync(packageFile))
    throw new ServiceError(
      "config.invalid",
      `there is no ${packageFile}; run npm init and npm install heddle`,
    );
  const { dependencies, optionalDependencies } = jsonOf(packageFile);
  if (!isObject(dependencies) || dependencies["heddle"] === undefined) {
    throw new ServiceError(
      "config.invalid",
      `${packageFile} does not name heddle in its dependencies, so the image would not have it; run npm install heddle`,
    );
  }
  const local = [dependencies, optionalDependencies].flatMap((some) =>
    localDependencies(root, packageFile, some),
  );
  const { notes, ...image } = imageOf(path);
  const env = read.envFile === undefined ? undefined : relative(root, read.envFile).replaceAll("\\", "/");
  const files = new Map([
    [
      "Dockerfile",
      dockerfileOf(root, basename(path), { env, mount: read.access?.mount ?? "", local, ...image }),
    ],
    [".dockerignore", env === undefined ? DOCKERIGNORE : `${DOCKERIGNORE}${env}\n`],
    ...(compose ? [["compose.yaml", composeOf(read.auth !== undefined)] as const] : []),
  ]);
  const existing = [...files.keys()].filter((name) => existsSync(join(root, name)));
  if (existing.length > 0 && !force) {
    throw new ServiceError(
      "config.invalid",
      `${root} has ${existing.join(", ")} already; --force replaces that`,
    );
  }
  writeTogether(root, [...files]);
  return { paths: [...files.keys()].map((name) => join(root, name)), notes };
}

/**
 * Writes all files into a temporary folder first, so that a full disk changes none, and then moves them to `root`. The first file is moved
 * last.
 */
function writeTogether(root: string, files: readonly (readonly [name: string, text: string])[]): void {
  const staging = mkdtempSync(join(root, ".heddle-build-"));
  try {
    for (const [name, text] of files) writeFileSync(join(staging, name), text);
    for (const [name] of files.toReversed()) renameSync(join(staging, name), join(root, name));
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * The paths of dependencies that are files or folders, relative to the project's directory.
 * @throws ServiceError `config.invalid` if one of them is outside this directory
 */
function localDependencies(root: string, packageFile: string, dependencies: unknown): readonly string[] {
  if (!isObject(dependencies)) return [];
  return Object.entries(dependencies).flatMap(([name, version]) => {
    const given = typeof version === "string" ? /^(?:file|link):(.+)$/.exec(version)?.[1] : undefined;
    if (given === undefined) return [];
    const path = relative(root, resolve(root, given)).replaceAll("\\", "/");
    if (path !== "" && !/^\.\.(?:\/|$)/.test(path) && !isAbsolute(path)) return [path];
    throw new ServiceError(
      "config.invalid",
      `${packageFile}: ${name} is ${given}, which is not within the project, so a build of its image cannot read it; put it there: ${copyCommand(root, name, given)}`,
    );
  });
}

/** The shell command that copies a dependency into the project, to be run in the project's directory `root`. */
function copyCommand(root: string, name: string, path: string): string {
  const isFolder = statSync(resolve(root, path), { throwIfNoEntry: false })?.isDirectory() === true;
  const source = JSON.stringify(path);
  const copy = isFolder ? `npm pack ${source} --pack-destination vendor` : `cp ${source} vendor/`;
  // `npm pack` names the archive after the package and its version. `*` stands for the version.
  const file = isFolder ? `${name.replace(/^@/, "").replace("/", "-")}-*.tgz` : basename(path);
  return `mkdir -p vendor && ${copy} && npm install ./vendor/${file}`;
}

interface Image {
  readonly nodeVersion: number;
  /** Lines that the configuration file adds to the Dockerfile. */
  readonly lines: readonly string[];
}

/**
 * The settings for the image from a configuration file, and warnings about settings that have no effect.
 * @throws ServiceError `config.invalid`
 */
function imageOf(path: string): Image & Pick<WrittenContainerFiles, "notes"> {
  const { node_version, dockerfile_lines: lines = [] } = jsonOf(path);
  if (!Array.isArray(lines) || !lines.every((line) => typeof line === "string"))
    throw new ServiceError("config.invalid", `${path}: dockerfile_lines must be a list of texts`);
  const nodeVersion = majorVersion(node_version);
  const isAsAsked = node_version === undefined || majorVersion(node_version, 0) === nodeVersion;
  const why = `the image has Node ${nodeVersion}, since it takes a number from ${OLDEST_NODE} on`;
  const notes = isAsAsked ? [] : [`${path}: node_version is ${JSON.stringify(node_version)}; ${why}`];
  return { nodeVersion, lines: lines as readonly string[], notes };
}

function jsonOf(path: string): JsonObject {
  const value = JSON.parse(readFileSync(path, "utf8")) as unknown;
  return isObject(value) ? value : {};
}

/** The lock file of a project, and the command that installs the packages. Without a lock file, npm installs them. */
function installOf(root: string, nodeVersion: number): readonly [lock: string | undefined, command: string] {
  const has = (name: string) => existsSync(join(root, name));
  const [lock, command] = has("yarn.lock")
    ? ["yarn.lock", has(".yarnrc.yml") ? YARN : YARN_1]
    : (INSTALLS.find(([name]) => has(name)) ?? [undefined, INSTALL_WITHOUT_LOCK]);
  if (command.startsWith("npm")) return [lock, command];
  // `--force` replaces the `yarn` of Yarn 1, which some images contain.
  const corepack = nodeVersion < NODE_WITHOUT_COREPACK ? "" : "npm install --global --force corepack && ";
  return [lock, `${corepack}corepack enable && ${command}`];
}

interface DockerfileOptions extends Image {
  /** The file with environment variables, relative to the project's directory; undefined if there is none. */
  readonly env: string | undefined;
  readonly mount: string;
  /** The paths of dependencies that are files or folders, relative to the project's directory. */
  readonly local: readonly string[];
}

function dockerfileOf(
  root: string,
  config: string,
  { nodeVersion, lines, env, mount, local }: DockerfileOptions,
): string {
  const [lock, install] = installOf(root, nodeVersion);
  const settings = SETTINGS_FILES.filter((name) => existsSync(join(root, name)));
  const copied = ["package.json", ...(lock === undefined ? [] : [lock]), ...settings].join(" ");
  const image = `node:${nodeVersion}-trixie-slim`;
  const emptyEnv =
    env === undefined
      ? ""
      : `# Its variables come from the environment of the container: secrets are no part of an image.
RUN mkdir -p ${posix.dirname(env)} && touch ${env}
`;
  return `# Debian 13: its glibc is new enough for uWebSockets.js, which is faster than Node's own server.
FROM ${image} AS packages
WORKDIR /app
COPY ${copied} ./
${local.map((path) => `COPY ${JSON.stringify([path, `./${path}`])}\n`).join("")}RUN ${install}

FROM ${image}
WORKDIR /app
ENV NODE_ENV=production
COPY --from=packages /app/node_modules ./node_modules
COPY . .
${emptyEnv}${lines.map((line) => `${line}\n`).join("")}# The data. Everything else may be read-only, but for the cache of compiled files in /tmp.
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
EXPOSE ${PORT}
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \\
  CMD ["node", "-e", "fetch('http://127.0.0.1:${PORT}${mount}/ok').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# It needs HEDDLE_API_KEYS, or auth in the configuration: without either it refuses to listen on other addresses than loopback.
CMD ["node", "--max-semi-space-size=64", "node_modules/heddle/dist/src/cli.js", "start", "--config", ${JSON.stringify(config)}, "--host", "0.0.0.0", "--port", "${PORT}", "--data", "/data"]
`;
}

/**
 * The major version of Node for the image: the given version, but at least `oldest`. If no version is given: {@link DEFAULT_NODE}, or 0 if
 * `oldest` is 0.
 */
function majorVersion(given: unknown, oldest = OLDEST_NODE): number {
  const asked = /^\d+/.exec(String(given ?? ""))?.[0];
  if (asked !== undefined) return Math.max(oldest, Number(asked));
  return oldest === 0 ? 0 : DEFAULT_NODE;
}

const DOCKERIGNORE = `node_modules
.git
.heddle
.langgraph_api
.env
.env.*
*.log
Dockerfile
.dockerignore
compose.yaml
`;

/** The text of the compose file. The container then requires API keys, unless the server authenticates users. */
const composeOf = (hasUsers: boolean): string => `services:
  heddle:
    build: .
    restart: unless-stopped
    ports:
      - "127.0.0.1:${PORT}:${PORT}"
    environment:
      # KEY or TENANT:KEY, separated by commas
      HEDDLE_API_KEYS: \${HEDDLE_API_KEYS${hasUsers ? ":-" : ":?set it to one or more API keys"}}
    env_file:
      - path: .env
        required: false
    volumes:
      - data:/data
    read_only: true
    tmpfs:
      - /tmp
    # Longer than a stop waits for running nodes.
    stop_grace_period: 30s
volumes:
  data:
`;
