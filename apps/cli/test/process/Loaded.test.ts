import { describe, expect, it } from "vitest"
import { run, source } from "./Program.ts"

/**
 * A command loads what it needs to say how it is used, and the rest when it works. Modules are counted, because time depends on the machine.
 * Those of Effect are not counted: the package contains only what is used of them.
 */

const hook = new URL("loadedModules.mjs", import.meta.url).href

/** What a command with its services, flags and descriptions may load. Signatures of providers would be 30 more. */
const maxOwn = 48

const library = /node_modules\/((?:@[^/]+\/)?[^/]+)\//
const inRepository = /\/((?:apps|packages)\/[^/]+\/src\/.*)$/

describe("What the command line loads", () => {
  it.for(["--help", "listen --help", "workflows --help"])("tidegate %s loads no more than it needs", async (words) => {
    const { code, complained } = await run(words.split(" "), { program: [process.execPath, "--import", hook, source] })
    expect({ code, complained }).toEqual({ code: 0, complained: expect.stringContaining("/apps/cli/src/main.ts") })
    const modules = complained.split("\n")
    const libraries = new Set(modules.flatMap((url) => library.exec(url)?.[1] ?? []))
    const others = [...libraries].filter((name) => !/^(?:effect|@effect\/.*)$/.test(name))
    expect(others).toEqual(["openapi-fetch"])
    const own = modules.filter((url) => !library.test(url)).flatMap((url) => inRepository.exec(url)?.[1] ?? [])
    expect(own.length, own.join("\n")).toBeLessThanOrEqual(maxOwn)
    // The work of these two is apart from their flags.
    expect(own).not.toContain("apps/cli/src/listen/Listening.ts")
    expect(own).not.toContain("apps/cli/src/workflows/Push.ts")
  })
})
