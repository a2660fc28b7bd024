/** A separate program: prints the sources of this folder and of the children's folder without their types, keyed by their URLs. */
import { readdirSync, readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"

const folders = [new URL("./", import.meta.url), new URL("./child/", import.meta.url)]
const sources = folders.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => new URL(name, folder))
)
const stripped = sources.map((source) => [source.href, stripTypeScriptTypes(readFileSync(source, "utf8"))])
process.stdout.write(JSON.stringify(Object.fromEntries(stripped)))
