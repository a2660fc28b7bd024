import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import type { Json } from "@tidegate/model/Rule"
import { asObject, orInvalid } from "../src/Input.ts"
import { transformation } from "../src/Transformation.ts"
import { runBody, runOf } from "../src/TransformationRun.ts"
import { changed, created } from "./written.ts"

const object = (input: Json) => orInvalid(asObject(input))
const createTransformation = (input: Json) => created(transformation, input)
const runTransformation = (input: Json, now: number) =>
  object(input).pipe(
    Result.flatMap(runBody.judge),
    Result.map((run) => runOf(run, now))
  )

const right = { name: "shape", code: "x" }
const variables = (count: number, value = "v") =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`V${i}`, value]))
const mebibyte = 1024 * 1024

const pathOf = (result: Result.Result<unknown, { readonly data?: Json }>) =>
  Result.match(result, {
    onSuccess: () => null,
    onFailure: ({ data }) => (data as { readonly fields: ReadonlyArray<{ readonly path: string }> }).fields[0]?.path
  })

describe("Input of a transformation", () => {
  it.each<[string, Json]>([
    ["name", { code: "x" }],
    ["code", { name: "shape" }],
    ["name", { ...right, name: "" }],
    ["name", { ...right, name: "x".repeat(156) }],
    ["name", { ...right, name: 1 }],
    ["code", { ...right, code: "" }],
    ["code", { ...right, code: " \n " }],
    ["code", { ...right, code: "x".repeat(mebibyte + 1) }],
    ["code", { ...right, code: "ü".repeat(mebibyte / 2) + "x" }],
    ["code", { ...right, code: "a\u0000b" }],
    ["code", { ...right, code: "\ud800" }],
    ["code", { ...right, code: null }],
    ["env", { ...right, env: [] }],
    ["env", { ...right, env: "A=1" }],
    ["env.A", { ...right, env: { A: 1 } }],
    ["env.A", { ...right, env: { A: null } }],
    ["env", { ...right, env: { "1A": "x" } }],
    ["env", { ...right, env: { "": "x" } }],
    ["env", { ...right, env: { "A-B": "x" } }],
    ["env", { ...right, env: { ä: "x" } }],
    ["env", { ...right, env: { A: "\u0000" } }],
    ["env", { ...right, env: variables(101) }],
    ["env", { ...right, env: variables(2, "x".repeat(32 * 1024)) }],
    ["isolation", { ...right, isolation: "none" }],
    ["isolation", { ...right, isolation: true }],
    ["body", []],
    ["body", null]
  ])("An invalid %s of a transformation is rejected in %j", (path, input) => {
    expect(pathOf(createTransformation(input))).toBe(path)
  })

  it("A transformation of the maximum size is accepted", () => {
    for (const input of [
      { ...right, name: "x".repeat(155) },
      { ...right, code: "x".repeat(mebibyte) },
      { ...right, env: variables(100) },
      { ...right, env: { A: "x".repeat(64 * 1024 - 1) } },
      { ...right, env: null },
      { ...right, isolation: null },
      { ...right, isolation: "sealed" },
      { ...right, isolation: "fresh" },
      { ...right, unknown: [1] }
    ]) {
      expect(pathOf(createTransformation(input))).toBeNull()
    }
  })

  it("The value of an environment variable never appears in an error", () => {
    const wrong = createTransformation({ ...right, env: { A: "secret\u0000", "B B": "hidden" } })
    expect(JSON.stringify(Result.getOrThrow(Result.flip(wrong)))).not.toMatch(/secret|hidden/)
  })

  it("A partial change of a transformation keeps the rest", () => {
    const stored = { name: "a", code: "b", env: { C: "d" }, isolation: "fresh" as const }
    const change = (input: Json) => changed(transformation, stored, input)
    expect(change({})).toEqual(Result.succeed({ name: "a", code: "b", env: "unchanged", isolation: "fresh" }))
    expect(change({ name: "n" })).toEqual(
      Result.succeed({ name: "n", code: "b", env: "unchanged", isolation: "fresh" })
    )
    expect(change({ env: {} })).toEqual(Result.succeed({ name: "a", code: "b", env: {}, isolation: "fresh" }))
    expect(change({ env: null })).toEqual(Result.succeed({ name: "a", code: "b", env: {}, isolation: "fresh" }))
    expect(change({ isolation: null })).toMatchObject(Result.succeed({ isolation: null }))
    expect(pathOf(change({ code: "" }))).toBe("code")
  })
})

describe("Input of a transformation run", () => {
  const sample = (request: Json): Json => ({ code: "x", request })

  it.each<[string, Json]>([
    ["code", {}],
    ["code", { code: null }],
    ["code", { transformation_id: null }],
    ["code", { code: "" }],
    ["transformation_id", { transformation_id: 1 }],
    ["transformation_id", { transformation_id: "x".repeat(101) }],
    ["env.A", { code: "x", env: { A: 1 } }],
    ["request", sample("x")],
    ["request.headers", sample({ headers: [] })],
    ["request.headers.a", sample({ headers: { a: 1 } })],
    ["request.headers", sample({ headers: { "a b": "x" } })],
    ["request.headers", sample({ headers: { a: "x\r\ny: z" } })],
    ["request.headers", sample({ headers: { a: ["x", "\u0001"] } })],
    ["request.query", sample({ query: 1 })],
    ["request.query", sample({ query: ["a"] })],
    ["request.query", sample({ query: "x".repeat(65_537) })],
    ["request.query", sample({ query: { a: "ü".repeat(20_000) } })],
    ["request.query", sample({ query: { a: { b: "c" } } })],
    ["request.path", sample({ path: "x" })],
    ["request.path", sample({ path: `/${"x".repeat(2048)}` })],
    ["request.method", sample({ method: "get" })],
    ["request.method", sample({ method: "CONNECT" })],
    ["timestamp", { code: "x", timestamp: "yesterday" }],
    ["context", { code: "x", context: [] }],
    ["context.connection_id", { code: "x", context: { connection_id: 1 } }]
  ])("An invalid %s of a run is rejected in %j", (path, input) => {
    expect(pathOf(runTransformation(input, 0))?.split(".").slice(0, path.split(".").length).join(".")).toBe(path)
  })
})
