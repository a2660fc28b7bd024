import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { linkInstalled } from "../support/Installed.ts"

/** What `npm test` stands on: the commands themselves, on a copy of the project that somebody has spoiled. */
const root = join(import.meta.dirname, "../..")

const settings = [
  ".gitignore",
  ".npmrc",
  ".oxfmtrc.json",
  ".oxlintrc.json",
  "infra",
  "package-lock.json",
  "package.json",
  // The launcher makes the client's types, and finds them made.
  "packages/client/openapi.json",
  "packages/client/src/schema.ts",
  "packages/client/types.mjs",
  "tsconfig.json",
  "vitest.config.ts"
]

let folder: string

/** These paths in a folder of their own, with what is installed. */
const copy = async (paths: ReadonlyArray<string>): Promise<void> => {
  folder = await mkdtemp(join(tmpdir(), "tidegate-gate-"))
  for (const path of paths) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await cp(join(root, path), join(folder, path), {
      recursive: true,
      filter: (from) => !from.endsWith("node_modules")
    })
  }
  await linkInstalled(folder)
}

const remove = () => rm(folder, { recursive: true, force: true })

/** `node infra/launch.mjs` in the copy, without what the runner of this suite has told it. */
const launch = (...args: ReadonlyArray<string>): Promise<{ readonly passed: boolean; readonly output: string }> =>
  new Promise((resolve) => {
    const { HOME, PATH } = process.env
    execFile(
      process.execPath,
      [join(folder, "infra/launch.mjs"), ...args],
      { cwd: folder, env: { HOME, PATH, NO_COLOR: "1", TEST_DATABASE_URL: inject("postgresUrl") } },
      (error, stdout, stderr) => resolve({ passed: error === null, output: stdout + stderr })
    )
  })

const sound = async (...args: ReadonlyArray<string>): Promise<void> => {
  const { output, passed } = await launch(...args)
  expect(passed, output).toBe(true)
}

/** The gate's output for the copy with these files in it. */
const refusal = async (
  args: ReadonlyArray<string>,
  files: Readonly<Record<string, ReadonlyArray<string>>>
): Promise<string> => {
  for (const [path, lines] of Object.entries(files)) await writeFile(join(folder, path), `${lines.join("\n")}\n`)
  const { output, passed } = await launch(...args)
  for (const path of Object.keys(files)) await rm(join(folder, path))
  expect(passed, output).toBe(false)
  return output
}

describe("npm run check", () => {
  beforeAll(() =>
    copy([
      ...settings,
      "packages/model",
      "packages/runtime",
      "packages/json",
      "packages/interpolation",
      // One of the dashboard's modules stands for all: its compiler runs, with its settings.
      "apps/dashboard/package.json",
      "apps/dashboard/tsconfig.json",
      "apps/dashboard/src/parts/Copy.tsx"
    ])
  )
  afterAll(remove)

  it("The check passes for sound code", () => sound("check"))

  it("The check refuses code in another format, although its other programs pass", async () => {
    const output = await refusal(["check"], {
      "packages/interpolation/src/Bad.ts": ["export const count = 'one';"]
    })
    expect(output).toMatch(/Bad\.ts[\s\S]*Format issues found/)
  })

  it("The check reports type errors and lint errors together, each by its file", async () => {
    const output = await refusal(["check"], {
      "packages/interpolation/src/BadType.ts": ['export const count: number = "one"'],
      "packages/interpolation/src/BadLint.ts": [
        'const later = async (): Promise<string> => "later"',
        "",
        "export const start = (): void => {",
        "  later()",
        "}"
      ]
    })
    expect(output).toMatch(/BadType\.ts.*TS2322/)
    expect(output).toMatch(/no-floating-promises[\s\S]*BadLint\.ts/)
  })
})

describe("Architecture suite", () => {
  const architecture = ["test", "test/architecture"]

  beforeAll(() => copy([...settings, "apps", "packages", "test"]))
  afterAll(remove)

  it("The architecture suite passes for sound code", () => sound(...architecture))

  it("The architecture suite refuses a wrong layer, SQL outside of storage, and a module that is not exported", async () => {
    const output = await refusal(architecture, {
      "packages/storage/src/Bad.ts": [
        'export { ConnectionEntity } from "@tidegate/entities/Connection/ConnectionProtocol"'
      ],
      "packages/ingress/src/Bad.ts": [
        'import { SqlClient } from "effect/sql"',
        'import { Effect } from "effect"',
        "",
        "export const bad = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`select id from events`)"
      ],
      "packages/ingress/src/Unexported.ts": ['export { strikes } from "@tidegate/verification/Credentials"']
    })
    expect(output).toContain(
      "packages/storage/src/Bad.ts must not import @tidegate/entities/Connection/ConnectionProtocol"
    )
    expect(output).toContain("packages/ingress/src/Bad.ts has a statement")
    expect(output).toContain('"./Credentials": "./src/Credentials.ts"')
  })
})
