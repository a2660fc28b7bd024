/** The bundles of the package: the command line, and the gateway with the programs that it starts. */
import { cpSync, mkdirSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "rolldown"
import { bundle } from "../gateway/bundle.mjs"
import { partsOf } from "./parts.mjs"

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** For any Node from version 20.19 on. Returns the libraries in it. */
export const bundleCommandLine = async (folder, version) => {
  const { output } = await build({
    input: { main: join(root, "apps/cli/src/main.ts"), older: join(root, "apps/cli/src/OlderNode.ts") },
    platform: "node",
    logLevel: "warn",
    transform: { define: { TIDEGATE_VERSION: JSON.stringify(version) } },
    output: {
      dir: folder,
      format: "esm",
      minify: true,
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js"
    }
  })
  return partsOf(output)
}

/**
 * Programs that a module starts, and a file of a library that it reads, by the text that names them. Node does not remove types from files
 * below `node_modules`, so these programs are bundled or contain none.
 */
const programs = {
  "packages/entities/src/Formatting/Workshop.ts": [
    'new URL("./worker.ts", import.meta.url)',
    'new URL("worker.mjs", import.meta.url)'
  ],
  "packages/sandbox/src/ChildProgram.ts": [
    'new URL("stripTypes.ts", import.meta.url)',
    'new URL("../packages/sandbox/src/stripTypes.mjs", import.meta.url)'
  ],
  "packages/api/src/DocsPage.ts": [
    'import.meta.resolve("effect/http-api/HttpApiScalar")',
    'new URL("../effect/HttpApiScalar.js", import.meta.url).href'
  ]
}

/** Modules go on finding files by their own place in a checkout: the folder above the bundle has the same files at the same paths. */
const inPackage = (code, path) => {
  const program = programs[path]
  if (program !== undefined) {
    if (!code.includes(program[0])) throw new Error(`${path} does not contain ${program[0]}`)
    return code.replace(...program)
  }
  return code.replaceAll("import.meta.url", `new URL(${JSON.stringify(`../${path}`)}, import.meta.url).href`)
}

/** For the Node that the package brings. `folder` also gets what a bundle cannot contain. Returns the libraries in both. */
export const bundleGateway = async (folder) => {
  const output = await bundle({
    input: {
      start: "apps/gateway/src/start.ts",
      admin: "apps/gateway/src/admin.ts",
      worker: "packages/entities/src/Formatting/worker.ts"
    },
    place: inPackage,
    output: { dir: join(folder, "bundle") }
  })
  mkdirSync(join(folder, "packages/sandbox/src"), { recursive: true })
  cpSync(join(root, "packages/sandbox/src/stripTypes.ts"), join(folder, "packages/sandbox/src/stripTypes.mjs"))
  const scalar = join(
    dirname(createRequire(join(root, "package.json")).resolve("effect/http-api/HttpApiScalar")),
    "internal/httpApiScalar.js"
  )
  cpSync(scalar, join(folder, "effect/internal/httpApiScalar.js"))
  return partsOf(output)
}
