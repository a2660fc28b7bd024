/**
 * Builds the dashboard: `node apps/dashboard/build.mjs` leaves its page and its files in `apps/dashboard/dist`. It does nothing while they
 * are those of the sources. `npm start` runs it first; it takes about a second.
 */
import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { publish, publishedIn } from "../../infra/publish.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(dirname(here))
const target = join(here, "dist")

const patterns = [
  "{infra/publish,apps/dashboard/*}.mjs",
  "apps/dashboard/{package.json,src/**/*.{ts,tsx,css,html}}",
  "packages/client/src/!(schema).ts",
  "packages/client/openapi.json"
]
const digest = globSync(patterns, { cwd: root })
  .toSorted((a, b) => (a < b ? -1 : 1))
  .reduce((hash, file) => hash.update(`${file}\n`).update(readFileSync(join(root, file))), createHash("sha256"))
  .digest("hex")

if (publishedIn(target)?.digest !== digest) await make()

/** The names by which people know the types of destinations, as the API's document says: lists show them without reading it. */
function destinationNames({ components: { schemas } }) {
  const variants = schemas.DestinationWrite.anyOf.map(({ $ref }) => schemas[$ref.split("/").at(-1)])
  return Object.fromEntries(variants.map(({ properties, title }) => [properties.type.enum[0], title]))
}

/** Who may make each call that changes something, as the API's document says: `src/may.ts` decides by it what the pages offer. */
function permissions({ paths }) {
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, calls]) =>
      Object.entries(calls).flatMap(([method, { security = [] }]) => {
        if (!["post", "put", "patch", "delete"].includes(method) || security.length === 0) return []
        const of = (scheme) => security.find((one) => one[scheme] !== undefined)?.[scheme]
        const permission = {
          role: of("session")?.[0] ?? null,
          teamKey: of("bearer") !== undefined,
          scopes: of("project_key") ?? null
        }
        return [[`${method.toUpperCase()} ${path}`, permission]]
      })
    )
  )
}

async function make() {
  const { build } = await import("rolldown")
  const document = JSON.parse(readFileSync(join(root, "packages/client/openapi.json"), "utf8"))
  const { output } = await build({
    input: { main: join(here, "src/main.tsx") },
    write: false,
    platform: "browser",
    logLevel: "warn",
    // "use client" is for servers that render pages.
    onLog: (level, log, report) => log.code === "MODULE_LEVEL_DIRECTIVE" || report(level, log),
    transform: {
      jsx: { runtime: "automatic" },
      define: {
        "process.env.NODE_ENV": '"production"',
        PERMISSIONS: JSON.stringify(permissions(document)),
        DESTINATION_NAMES: JSON.stringify(destinationNames(document))
      }
    },
    output: {
      format: "esm",
      minify: true,
      entryFileNames: "[name]-[hash].js",
      chunkFileNames: "[name]-[hash].js"
    }
  })
  const script = output.find(({ isEntry }) => isEntry).fileName
  // One file: a browser would ask for each import, and only after it has read the one before.
  const style = readFileSync(join(here, "src/style.css"), "utf8").replaceAll(/@import "(.+)";\n/g, (_, part) =>
    readFileSync(join(here, "src", part), "utf8")
  )
  const styleName = `style-${createHash("sha256").update(style).digest("hex").slice(0, 10)}.css`
  // The package lists the libraries that are in it.
  const modules = output.flatMap(({ moduleIds }) => moduleIds)
  const libraries = modules.flatMap((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? [])
  publish(target, {
    digest,
    files: { ...Object.fromEntries(output.map(({ code, fileName }) => [fileName, code])), [styleName]: style },
    libraries: [...new Set(libraries)].map((folder) => relative(root, folder)),
    pages: {
      "index.html": readFileSync(join(here, "src/index.html"), "utf8")
        .replace("{{script}}", script)
        .replace("{{style}}", styleName)
    }
  })
}
