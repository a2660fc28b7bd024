import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { describe, expect } from "vitest"
import { parse } from "yaml"
import { instruments } from "../../packages/telemetry/src/Metrics.ts"
import { ownIt } from "../support/it.ts"
import { blocksOf, shellIn } from "../support/Page.ts"

/** What `docs/runbook.md` tells an operator. It is read when something is wrong, so every name and every command on it has to be right. */

const root = resolve(import.meta.dirname, "../..")
const read = (path: string): string => readFileSync(join(root, path), "utf8")
const sourcesUnder = (pattern: string): string => globSync(pattern, { cwd: root }).map(read).join("\n")

const page = read("docs/runbook.md")
const blocks = await blocksOf("runbook.md", ["sh"])
const namedBy = (pattern: RegExp, text = page): ReadonlyArray<string> => [
  ...new Set([...text.matchAll(pattern)].map(([, name]) => name!))
]

interface Rules {
  readonly groups: ReadonlyArray<{
    readonly rules: ReadonlyArray<{ readonly alert: string; readonly annotations: { readonly runbook: string } }>
  }>
}

const alarms = (parse(read("infra/observability/rules.yaml")) as Rules).groups.flatMap(({ rules }) => rules)

/** A path with each of its parameters, a variable of the shell too, as `{}`. */
const shapeOf = (path: string): string => path.replace(/\?.*$/, "").replaceAll(/\$\w+|\{\w+\}/g, "{}")

const it = ownIt

describe("docs/runbook.md", () => {
  it("The runbook has a part for every alarm, in the order of the rules", () => {
    expect(namedBy(/^## (.+)$/gm)).toEqual(alarms.map(({ alert }) => alert))
    for (const { alert, annotations } of alarms)
      expect(annotations.runbook).toBe(`docs/runbook.md#${alert.toLowerCase()}`)
    for (const part of page.split(/^## /m).slice(1))
      expect(part.match(/^\*\*(?:Means|Look at|Do):\*\*/gm)).toEqual(["**Means:**", "**Look at:**", "**Do:**"])
  })

  it("Every metric that the runbook names exists", () => {
    const named = namedBy(/\b((?:tidegate|process|nodejs)_[a-z_]+[a-z])\b/g)
    const known = new Set(instruments.map(({ name }) => name))
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  it("Every route that the runbook names exists", () => {
    const { paths } = JSON.parse(read("packages/client/openapi.json")) as {
      readonly paths: Readonly<Record<string, object>>
    }
    const known = new Set(
      Object.entries(paths).flatMap(([path, calls]) =>
        Object.keys(calls).map((method) => `${method.toUpperCase()} ${shapeOf(path)}`)
      )
    )
    const named = namedBy(/\b((?:GET|POST|PUT|PATCH|DELETE) ["']?\/[^\s`"']+)/g).map((call) =>
      shapeOf(call.replace(/["']/, ""))
    )
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((call) => !known.has(call))).toEqual([])
  })

  it("Every setting, code and operator's command that the runbook names exists", () => {
    const settings = namedBy(/\b(TIDEGATE_[A-Z_]+)/g)
    const sources = sourcesUnder("apps/gateway/src/*.ts")
    expect(settings.length).toBeGreaterThan(0)
    expect(settings.filter((name) => !sources.includes(`"${name}"`))).toEqual([])
    const codes = namedBy(/`([A-Z]+_[A-Z_]+|TIMEOUT)`/g).filter((name) => !name.startsWith("TIDEGATE_"))
    expect(codes.length).toBeGreaterThan(0)
    expect(codes.filter((code) => !read("packages/model/src/AttemptErrorCode.ts").includes(`"${code}"`))).toEqual([])
    const commands = namedBy(/(?:npx tidegate|admin --) ([a-z]+)/g)
    const administration = sourcesUnder("apps/gateway/src/**/*.ts")
    expect(commands).toContain("doctor")
    for (const command of commands) expect(administration).toMatch(new RegExp(`Command\\.make\\(\\s*"${command}"`))
  })

  it("Every reason for which requests are refused is in the runbook's table", () => {
    const [[, reasons]] = instruments.find(({ name }) => name === "tidegate_sheds_total")!.labels as [
      readonly [string, ReadonlyArray<string>]
    ]
    const table = page.slice(page.indexOf("| Reason"), page.indexOf("\n**Do:** what the table says"))
    expect(namedBy(/`([a-z]+(?:_[a-z]+)*)`/g, table).toSorted()).toEqual([...reasons].toSorted())
  })

  it("Every command of the runbook works", async ({ gateway, onTestFinished, target }) => {
    const { connection, destination, source } = await gateway.route(target)
    // A metric by error code has a value from the first attempt on.
    expect((await fetch(source.url, { method: "POST", body: "x" })).status).toBe(200)
    await target.next()
    await gateway.settled()
    const { body: workflow, status } = await gateway.call(
      "POST",
      "/workflow-templates/failed-payment-alert/instantiate",
      {
        name: gateway.name("workflow"),
        source_id: source.id,
        bindings: { alerts: destination.id }
      }
    )
    expect(status, JSON.stringify(workflow)).toBe(200)
    const folder = mkdtempSync(join(tmpdir(), "tidegate-runbook-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const ids = { SRC: source.id, DES: destination.id, WEB: connection.id, FLOW: workflow.id }
    const run = await shellIn(gateway, folder, ids)
    expect(blocks.length).toBeGreaterThan(10)
    const output = await run(blocks.map(({ code }) => code).join("\n"))
    expect(output).toMatch(/^200\n200\n/)
    expect(output).toContain('tidegate_sheds_total{reason="journal_full"} 0')
    expect(output).toContain('tidegate_attempts_total{error="none"} 1')
    expect(output).toContain('"rate_limit":100')
  })
})
