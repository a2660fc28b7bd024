/**
 * Packs the command line: `node apps/cli/pack.mjs [folder]` leaves `tidegate-<version>.tgz` there. All that it needs is in it, as
 * a few bundled files: installing it fetches nothing else, and it starts without looking for modules.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "rolldown"

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(dirname(here))
const target = resolve(process.argv[2] ?? ".")
const { license, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const manifest = {
  name: "tidegate",
  version,
  description:
    "Works with a Tidegate event gateway: a tunnel to an app on this machine, test events, records, retries, configuration as a file.",
  license,
  type: "module",
  bin: { tidegate: "bin/tidegate.js" },
  files: ["bin"],
  engines: { node: ">=20.19" }
}

/** Compiled code is kept from one run to the next, from Node 22 on: most of the time to start is compiling. */
const bin = `#!/usr/bin/env node
import * as module from "node:module"

module.enableCompileCache?.()
if (globalThis.WebSocket === undefined || URL.parse === undefined) await import("./older.js")
await import("./main.js")
`

const stage = mkdtempSync(join(tmpdir(), "tidegate-pack-"))
try {
  mkdirSync(join(stage, "bin"))
  mkdirSync(target, { recursive: true })
  await build({
    input: { main: join(here, "src/main.ts"), older: join(here, "src/OlderNode.ts") },
    platform: "node",
    logLevel: "warn",
    transform: { define: { TIDEGATE_VERSION: JSON.stringify(version) } },
    output: {
      dir: join(stage, "bin"),
      format: "esm",
      minify: true,
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js"
    }
  })
  writeFileSync(join(stage, "bin/tidegate.js"), bin, { mode: 0o755 })
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
  copyFileSync(join(root, "docs/cli.md"), join(stage, "README.md"))
  copyFileSync(join(root, "LICENSE"), join(stage, "LICENSE"))
  execFileSync("npm", ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target], {
    cwd: stage,
    stdio: "inherit"
  })
} finally {
  rmSync(stage, { recursive: true, force: true })
}
