import { describe, expect, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

const Packages = Schema.Record(
  Schema.String,
  Schema.Struct({
    link: Schema.optional(Schema.Boolean),
    integrity: Schema.optional(Schema.String),
    resolved: Schema.optional(Schema.String)
  })
)
const LockFile = Schema.fromJsonString(Schema.Struct({ packages: Packages }))
const Ranges = Schema.optional(Schema.Record(Schema.String, Schema.String))
const Manifest = Schema.fromJsonString(
  Schema.Struct({ dependencies: Ranges, devDependencies: Ranges, optionalDependencies: Ranges })
)

const read = (path: string) => readFileSync(join(root, path), "utf8")

/** A digest that npm compares with what it has downloaded. */
const isIntegrity = (text: string | undefined): boolean => /^sha512-[A-Za-z0-9+/]{86}==$/.test(text ?? "")

describe("Installed packages", () => {
  it("Every entry of the lock file has a digest and names no registry", () => {
    const { packages } = Schema.decodeUnknownSync(LockFile)(read("package-lock.json"))
    const installed = Object.entries(packages).filter(([path, { link }]) => path.includes("node_modules/") && !link)
    expect(installed.length).toBeGreaterThan(100)
    const unlocked = installed.filter(([, { integrity }]) => !isIntegrity(integrity)).map(([path]) => path)
    expect(unlocked).toStrictEqual([])
    expect(installed.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toStrictEqual([])
  })

  it("No package script runs during installation", () => {
    expect(read(".npmrc").split("\n")).toContain("ignore-scripts=true")
  })

  it("Dependencies have exact versions", () => {
    const manifests = ["package.json", ...globSync("{apps,packages}/*/package.json", { cwd: root })]
    for (const path of manifests) {
      const { dependencies, devDependencies, optionalDependencies } = Option.getOrThrow(
        Schema.decodeUnknownOption(Manifest)(read(path))
      )
      for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
        // A package of the workspace has no version but its own.
        if (name.startsWith("@tidegate/")) continue
        expect(version, `${name} in ${path}`).toMatch(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/)
      }
    }
  })
})
