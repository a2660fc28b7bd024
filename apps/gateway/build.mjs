/**
 * Bundles the gateway: `node apps/gateway/build.mjs` leaves its programs in `apps/gateway/dist`. It does nothing while they are those of the
 * sources. `npm start` runs it first; it takes about two seconds. Node could run the sources themselves, but would keep the text of 1,700
 * modules with their comments in memory.
 */
import { createHash } from "node:crypto"
import { globSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { publish, publishedIn } from "../../infra/publish.mjs"
import { bundle } from "./bundle.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(dirname(here))
const target = join(here, "dist")

/** `main` is one process of the gateway; `start` is that, or a supervisor of several. */
const input = { start: "apps/gateway/src/start.ts", main: "apps/gateway/src/main.ts" }

const patterns = ["{apps/gateway/*,infra/publish}.mjs", "{apps/gateway,packages/*}/src/**/*.ts", "package-lock.json"]
const digest = globSync(patterns, { cwd: root })
  .toSorted((a, b) => (a < b ? -1 : 1))
  .reduce(
    (hash, file) => hash.update(`${file}\n`).update(readFileSync(join(root, file))),
    // The programs name the files beside their sources by their place.
    createHash("sha256").update(`${root}\n`)
  )
  .digest("hex")

if (publishedIn(target)?.digest !== digest) {
  // Node keeps compiled code by the names of files, which change with each bundle.
  rmSync(join(target, "compiled"), { recursive: true, force: true })
  const output = await bundle({ input, output: { entryFileNames: "[name]-[hash].mjs" } })
  const entries = output.filter(({ isEntry, name }) => isEntry && name in input)
  publish(target, {
    digest,
    files: Object.fromEntries(output.map(({ code, fileName }) => [fileName, code])),
    pages: Object.fromEntries(entries.map(({ fileName, name }) => [`${name}.mjs`, `import "./assets/${fileName}"\n`]))
  })
}
