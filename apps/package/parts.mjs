/**
 * The list of libraries in the package, as scanners for known faults read it (CycloneDX). `npm sbom` lists what is installed beside each
 * other; what a bundle contains is known only to who made the bundle.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"

const between = "/node_modules/"

/** The folder of the library that a module belongs to; null: it is the project's own. */
const folderOf = (module) => {
  const at = module.lastIndexOf(between)
  if (at === -1) return null
  const path = module.slice(at + between.length).split("/")
  return module.slice(0, at + between.length) + path.slice(0, path[0].startsWith("@") ? 2 : 1).join("/")
}

/** A library in its folder. */
export const partIn = (folder) => {
  const { license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  return { name, version, license }
}

/** The libraries in the chunks of a build. */
export const partsOf = (output) => {
  const modules = output.flatMap((one) => (one.type === "chunk" ? one.moduleIds : []))
  return [...new Set(modules.map(folderOf))].filter((folder) => folder !== null).map(partIn)
}

/** The address of a package in such lists. */
const address = ({ name, version }) => `pkg:npm/${name.replace("@", "%40")}@${version}`

const component = (type, part) => {
  const { license, name, version } = part
  const licenses = typeof license === "string" ? [{ expression: license }] : []
  return { type, "bom-ref": address(part), name, version, licenses, purl: address(part) }
}

export const listOf = (product, parts) => {
  const each = new Map(parts.map((part) => [address(part), component("library", part)]))
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: component("application", product) },
    components: [...each.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1))
  }
}
