import { expect, layer } from "@effect/vitest"
import { globSync } from "node:fs"
import { Effect, Predicate, SchemaAST } from "effect"
import { describe, it } from "vitest"
import { call } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"
import { createSource, createWorkflow, layer as server, receive, unique } from "./workflowRuns.ts"

/* Lengths are characters, as the documents count them, of every name and text: an emoji is one. */

const folders = "{model,rules,signatures,connectors,actions,workflows,resources}/src"

/** What is reached from here, each once. */
const reached = (roots: ReadonlyArray<unknown>): ReadonlySet<object> => {
  const seen = new Set<object>()
  const open = [...roots]
  while (open.length > 0) {
    const one = open.pop()
    if (!Predicate.isObjectKeyword(one) || seen.has(one) || ArrayBuffer.isView(one)) continue
    seen.add(one)
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(one))) open.push(value)
  }
  return seen
}

/** The checks of a text that count its UTF-16 units: a bound of one is the same in characters. */
const unitChecks = ({
  checks = []
}: {
  readonly checks?: ReadonlyArray<SchemaAST.Check<never>> | undefined
}): ReadonlyArray<unknown> =>
  checks.flatMap((check) => {
    if (check._tag === "FilterGroup") return unitChecks(check)
    const { id, payload } = (check.annotations?.representation ?? {}) as {
      id?: string
      payload?: { minLength?: number }
    }
    return /is(?:Max|Min|Between)Length/.test(id ?? "") && payload?.minLength !== 1 ? [{ id, payload }] : []
  })

describe("Schemas of what callers write", () => {
  it("Schemas do not limit any text by its UTF-16 units", async () => {
    const files = globSync([`${folders}/**/*.ts`, "api/src/contract/*.ts"], { cwd: `${import.meta.dirname}/../..` })
    const modules: ReadonlyArray<object> = await Promise.all(
      files.map((file) => import(/* @vite-ignore */ `../../${file}`))
    )
    const texts = [...reached(modules.flatMap((module) => Object.values(module)))].filter(
      (one) => one instanceof SchemaAST.String
    )
    expect(texts.flatMap((text) => unitChecks(text as never))).toEqual([])
    expect(texts.length).toBeGreaterThan(200)
  })
})

/** A name of that many characters, like no other. */
const wide = (characters: number): string => {
  const other = unique("n").replace(" ", "")
  return other + "\u{1f4e6}".repeat(characters - other.length)
}

const step = (
  name: string,
  paths: ReadonlyArray<object> = []
): { readonly id: string; readonly kind: string; readonly name: string; readonly config: object } =>
  paths.length === 0
    ? { id: "only_paid", kind: "filter", name, config: { conditions: { body: { a: 1 } }, note: name } }
    : { id: "paths", kind: "branch", name: "", config: { paths } }

layer(server, { excludeTestServices: true })("Length of names and texts", (it) => {
  it.effect("Name or text may have the stated maximum of characters and not one more", () =>
    Effect.gen(function* () {
      const { token: key } = yield* somebody
      const source = yield* createSource
      const workflow = yield* createWorkflow([step("")], [{ source_type: "trigger", target_step_id: "only_paid" }])
      const { request } = yield* receive(workflow, {})
      const stepped = (one: ReturnType<typeof step>) =>
        call("PATCH", `/workflows/${workflow.id}`, {
          body: { steps: [one], edges: [{ source_type: "trigger", target_step_id: one.id }] }
        })
      const action = { provider_key: "http", action_key: "request", inputs: { url: "https://ledger.test/" } }
      const places: ReadonlyArray<readonly [string, number, (text: string) => ReturnType<typeof call>]> = [
        ["a source's name", 155, (name) => call("POST", "/sources", { body: { name } })],
        [
          "a source's description",
          4_096,
          (description) => call("PATCH", `/sources/${source.id}`, { body: { description } })
        ],
        ["a workflow's name", 155, (name) => call("PATCH", `/workflows/${workflow.id}`, { body: { name } })],
        [
          "a workflow's description",
          4_000,
          (description) => call("PATCH", `/workflows/${workflow.id}`, { body: { description } })
        ],
        ["a step's name", 155, (name) => stepped(step(name))],
        ["a step's note", 4_000, (note) => stepped({ ...step(""), config: { ...step("").config, note } })],
        ["a path's name", 155, (name) => stepped(step("", [{ key: "one", name, rule: "always" }]))],
        ["an action's name", 128, (name) => call("POST", "/actions", { body: { name, ...action } })],
        [
          "a key's name",
          100,
          (name) => call("POST", "/project-api-keys", { key, body: { name, scopes: ["control:read"] } })
        ],
        ["a user's name", 120, (name) => call("PATCH", "/auth/me", { key, body: { name } })],
        ["a signing secret", 500, (signing_secret) => call("PUT", "/project-secrets", { body: { signing_secret } })],
        ["a fixture's name", 120, (name) => call("POST", "/request-fixtures", { body: { name, request_id: request } })],
        [
          "a fixture's description",
          500,
          (description) =>
            call("POST", "/request-fixtures", { body: { name: "one", description, request_id: request } })
        ],
        ["a share's title", 120, (title) => call("POST", `/requests/${request}/share`, { body: { title } })],
        [
          "a bulk operation's search",
          200,
          (q) => call("POST", "/requests/bulk_operations", { body: { q, source_id: "src_none" } })
        ],
        ["a list's search", 200, (q) => call("GET", `/requests?q=${encodeURIComponent(q)}`)],
        ["a search of the activity", 200, (q) => call("GET", `/workflow-activity?q=${encodeURIComponent(q)}`)],
        [
          "a formatter test's seed",
          200,
          (seed) =>
            call("POST", "/workflow-formatter/test", {
              body: { config: { operation: "text.trim" }, inputs: { input: "a" }, seed }
            })
        ],
        [
          "a pattern",
          512,
          ($regex) =>
            call("POST", "/filters/test", { body: { conditions: { path: { $regex } }, request: { path: "/" } } })
        ]
      ]
      for (const [what, most, send] of places) {
        const [within, beyond] = [yield* send(wide(most)), yield* send(wide(most + 1))]
        expect(within.status, `${what} within: ${JSON.stringify(within.body)}`).toBeLessThan(300)
        expect(beyond.status, `${what} beyond: ${JSON.stringify(beyond.body)}`).toBe(400)
      }
    })
  )

  it.effect("Signing secret must have the stated minimum of characters", () =>
    Effect.gen(function* () {
      const secret = (times: number) =>
        call("PUT", "/project-secrets", { body: { signing_secret: "\u{1f4e6}".repeat(times) } })
      expect([(yield* secret(11)).status, (yield* secret(12)).status]).toEqual([400, 200])
    })
  )
})
