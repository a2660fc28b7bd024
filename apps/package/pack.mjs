/**
 * Packs the product: `node apps/package/pack.mjs [folder]` leaves `tidegate-<version>.tgz` there. It contains the command line, the gateway
 * with its dashboard and guides, and the libraries that they load while they run. Node and PostgreSQL for the gateway are optional
 * dependencies, so the command line also installs without a registry.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { publishedIn } from "../../infra/publish.mjs"
import { bundleCommandLine, bundleGateway } from "./bundles.mjs"
import { bundledLibraries, copyLibrary } from "./libraries.mjs"
import { listOf, partIn } from "./parts.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(dirname(here))
const target = resolve(process.argv[2] ?? ".")
const project = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const manifest = {
  name: "tidegate",
  version: project.version,
  description:
    "An event gateway for webhooks with its dashboard, and its command line: a tunnel to an app on this machine, test events, records, retries, configuration as a file.",
  license: project.license,
  type: "module",
  bin: { tidegate: "bin/tidegate.js" },
  files: ["bin", "gateway", "sbom.cdx.json"],
  engines: { node: ">=20.19" },
  dependencies: Object.fromEntries(bundledLibraries.map(({ name, version }) => [name, version])),
  bundleDependencies: bundledLibraries.map(({ name }) => name),
  optionalDependencies: project.optionalDependencies
}

await import("../dashboard/build.mjs")
const dashboard = publishedIn(join(root, "apps/dashboard/dist"))

/** What the gateway reads from its folder while it runs, by paths in a checkout. */
const files = [
  "apps/dashboard/dist/index.html",
  ...dashboard.files.map((name) => `apps/dashboard/dist/assets/${name}`),
  "docs",
  "packages/client/openapi.json",
  // Children of the sandbox get the sources of this folder, without their types.
  "packages/sandbox/src"
]

const stage = mkdtempSync(join(tmpdir(), "tidegate-pack-"))
try {
  mkdirSync(target, { recursive: true })
  const parts = [
    ...(await bundleCommandLine(join(stage, "bin"), project.version)),
    ...(await bundleGateway(join(stage, "gateway"))),
    ...dashboard.libraries.map((folder) => partIn(join(root, folder))),
    ...bundledLibraries
  ]
  writeFileSync(join(stage, "sbom.cdx.json"), `${JSON.stringify(listOf(manifest, parts), null, 2)}\n`)
  for (const name of files) cpSync(join(root, name), join(stage, "gateway", name), { recursive: true })
  for (const { name } of bundledLibraries) copyLibrary(name, join(stage, "node_modules", name))
  for (const name of ["tidegate.js", "start.js"]) cpSync(join(here, "bin", name), join(stage, "bin", name))
  cpSync(join(root, "infra/launch/run.mjs"), join(stage, "bin/run.mjs"))
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
  cpSync(join(root, "docs/cli.md"), join(stage, "README.md"))
  cpSync(join(root, "LICENSE"), join(stage, "LICENSE"))
  execFileSync("npm", ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target], {
    cwd: stage,
    stdio: "inherit"
  })
} finally {
  rmSync(stage, { recursive: true, force: true })
}
