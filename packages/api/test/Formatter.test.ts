import { expect, layer } from "@effect/vitest"
import { Context, Effect, Random } from "effect"
import { operations } from "../../formatter/src/Operations.ts"
import { call, layer as server } from "./ControlServer.ts"

const catalog = "/workflow-formatter/catalog"
const test = "/workflow-formatter/test"

const body = {
  config: { operation: "text.replace", options: {} },
  inputs: { input: "{{trigger.body.name}}", find: "-", replace: " " },
  context: { trigger: { body: { name: "ada-lovelace" } } },
  anchor_at: "2026-01-01T00:00:00.000Z"
}

layer(server, { excludeTestServices: true })("Formatter calls", (it) => {
  it.effect("Formatter catalog lists every operation and is not sent again to a caller that has it", () =>
    Effect.gen(function* () {
      const answer = yield* call("GET", `/v1${catalog}`)
      expect(answer.status).toBe(200)
      const keys = answer.body.categories.flatMap((one: { operations: ReadonlyArray<{ key: string }> }) =>
        one.operations.map(({ key }) => key)
      )
      expect(keys).toEqual([...operations.keys()])
      const etag = JSON.stringify(answer.body.catalog_hash)
      expect(answer.headers.get("etag")).toBe(etag)
      // A proxy that packs what it passes on makes the tag weak, and who has several names them all.
      for (const had of [etag, `W/${etag}`, `"another", ${etag}`, "*"]) {
        expect((yield* call("GET", catalog, { headers: { "if-none-match": had } })).status).toBe(304)
      }
      expect((yield* call("GET", catalog, { headers: { "if-none-match": '"another"' } })).status).toBe(200)
    })
  )

  it.effect("Formatter test runs an operation on a sample and is not cached", () =>
    Effect.gen(function* () {
      for (const prefix of ["", "/v1"]) {
        const answer = yield* call("POST", prefix + test, { body })
        expect(answer).toMatchObject({
          status: 200,
          body: {
            operation: "text.replace",
            resolved_input: { input: "ada-lovelace", find: "-", replace: " " },
            output: { result: "ada lovelace" },
            warnings: [],
            anchor_at: "2026-01-01T00:00:00.000Z"
          }
        })
        expect(answer.headers.get("cache-control")).toBe("no-store")
      }
    })
  )

  it.effect("Formatter test accepts texts that cannot be stored, like a run does", () =>
    Effect.gen(function* () {
      const config = { operation: "text.uppercase" }
      const torn = yield* call("POST", test, { body: { config, inputs: { input: "a\ud800b" } } })
      expect(torn).toMatchObject({ status: 200, body: { output: { result: "A\ufffdB" } } })
      const nul = yield* call("POST", test, { body: { config, inputs: { input: "a\u0000b" } } })
      expect(nul).toMatchObject({ status: 200, body: { output: { result: "A\u0000B" } } })
    })
  )

  it.effect("Formatter operation without a result is answered 422 with the stage and the resolved inputs", () =>
    Effect.gen(function* () {
      const answer = yield* call("POST", test, {
        body: { config: { operation: "date.format", options: { to_format: "YYYY" } }, inputs: { input: "32.13.2026" } }
      })
      expect(answer).toMatchObject({
        status: 422,
        body: {
          error: "Formatter error",
          code: "FORMATTER_DATE_UNPARSEABLE",
          data: {
            stage: "execution",
            operation: "date.format",
            engine_version: "1.0.0",
            field: "input",
            value_preview: "32.13.2026",
            resolved_input: { input: "32.13.2026" }
          }
        }
      })
    })
  )

  it.effect("Malformed or too large formatter body has error codes of the formatter", () =>
    Effect.gen(function* () {
      const large = { ...body, context: { trigger: "x".repeat(262_144) } }
      expect(yield* call("POST", test, { body: large })).toMatchObject({
        status: 413,
        body: { code: "FORMATTER_BODY_TOO_LARGE", data: { limit_bytes: 262_144 } }
      })
      expect(yield* call("POST", test, { body: {} })).toMatchObject({
        status: 400,
        body: { code: "FORMATTER_ENVELOPE_INVALID", data: { fields: [{ path: "config" }] } }
      })
      expect(yield* call("POST", test, { body: [] })).toMatchObject({
        status: 400,
        body: { code: "FORMATTER_ENVELOPE_INVALID" }
      })
      expect(yield* call("POST", test, { body: { ...body, anchor_at: "yesterday" } })).toMatchObject({
        status: 400,
        body: { code: "FORMATTER_ANCHOR_INVALID" }
      })
    })
  )

  it.effect("Formatter test never fails with an internal error for random inputs", () =>
    Effect.gen(function* () {
      const random = Context.get(Context.empty(), Random.Random)
      const one = <A>(of: ReadonlyArray<A>): A => of[Math.floor(random.nextDoubleUnsafe() * of.length)]!
      const values = [
        "",
        "a,b",
        "2026-01-31",
        "{{trigger.x}}",
        "{{",
        "(a+)+$",
        0,
        -1,
        1e21,
        null,
        true,
        [],
        ["a", 1],
        {},
        { a: [1] }
      ]
      for (let at = 0; at < 300; at++) {
        const { fields, key } = one([...operations.values()])
        const inputs = Object.fromEntries(
          Object.entries(fields).flatMap(([name, { mappable }]) => (mappable ? [[name, one(values)]] : []))
        )
        const { status } = yield* call("POST", test, { body: { config: { operation: key }, inputs } })
        expect([200, 422]).toContain(status)
      }
    })
  )
})
