import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { callOf, handler, openSandbox } from "./openSandbox.ts"
import type { OpenSandbox } from "./openSandbox.ts"
import { errors, invalid, levels, returns, world } from "./semantics.ts"
import type { TransformRequest } from "../src/Call.ts"

let sandbox: OpenSandbox
beforeAll(async () => {
  sandbox = await openSandbox({ children: 2, spares: 0 })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const original = callOf("").request
const returned = async (body: string, request: Partial<TransformRequest> = {}) => {
  const { request: result, error } = await sandbox.run(callOf(handler(body), { request }))
  return error ?? result
}

describe("Received body", () => {
  const request = {
    ...original,
    get body(): never {
      throw new Error("it is not read")
    }
  }
  const received = (text: string, does: string) =>
    sandbox.run({ ...callOf(handler(does)), request, bodyText: () => text })

  it("Code gets a body that was received as the value of its JSON, or as text, and the gateway does not parse it", async () => {
    const { request, written } = await received(' {"a": [1, 2.0]}', "return { body: { got: request.body } }")
    expect(written).toEqual({ json: '{"got":{"a":[1,2]}}', isText: false })
    expect(request?.headers).toEqual(original.headers)
    expect((await received('{"a":', "return { body: [request.body] }")).written?.json).toBe('["{\\"a\\":"]')
  })

  it("A received body that the code leaves alone stays as it was received", async () => {
    for (const text of ['{ "a" : 1.0 }', '{"a":', "null", '"x"']) {
      const { error, written } = await received(text, "request.path = '/other'; return request")
      expect({ error, written }).toEqual({ error: null, written: null })
    }
    expect((await received("{}", "request.body.b = 1; return request")).written?.json).toBe('{"b":1}')
  })
})

describe("Handler", () => {
  it("A handler receives the request and returns it", async () => {
    const before = Date.now()
    const { request, error, logLevel, startedAt, finishedAt } = await sandbox.run(callOf(handler("return request")))
    expect(error).toBe(null)
    expect(request).toEqual(original)
    expect(logLevel).toBe("info")
    expect(finishedAt).toBeGreaterThanOrEqual(startedAt)
    expect(startedAt).toBeGreaterThanOrEqual(before)
    expect(Date.now()).toBeGreaterThanOrEqual(finishedAt)
  })

  it("A handler receives the context and the environment, in both places", async () => {
    const call = callOf(handler("return { body: [process.env.NAME, context] }"), { env: { NAME: "value" } })
    const { request } = await sandbox.run(call)
    expect(request?.body).toEqual(["value", { ...call.context, env: { NAME: "value" } }])
  })

  it("The last added handler is called", async () => {
    const code = `${handler("return { body: 1 }")};${handler("return { body: 2 }")}`
    expect((await sandbox.run(callOf(code))).request?.body).toBe(2)
  })

  it("Code without a handler fails with NO_HANDLER", async () => {
    for (const code of ["", "1 + 1", "// addHandler"]) {
      expect((await sandbox.run(callOf(code))).error?.code).toBe("NO_HANDLER")
    }
  })

  it("Code that is only loaded does not call its handler", async () => {
    const load = (code: string) => sandbox.run(callOf(code, { isLoadedOnly: true, env: { NAME: "value" } }))
    const loaded = await load(
      `console.log(process.env.NAME); ${handler("console.log('called'); throw new Error('called')")}`
    )
    expect(loaded).toMatchObject({ error: null, request: original, logs: [{ type: "log", message: "value" }] })
    for (const [code, error, line] of [
      ["1 + 1", "NO_HANDLER", null],
      ["\n}", "SYNTAX_ERROR", 2],
      ["\n\nthrow new Error('no')", "RUNTIME_ERROR", 3],
      ["for (;;) {}", "TIMEOUT", null]
    ] as const) {
      expect((await load(code)).error).toMatchObject({ code: error, line })
    }
  })

  it("A handler for another event, or one that is not a function, is rejected", async () => {
    for (const code of ["addHandler('delete', () => 1)", "addHandler('transform', 1)"]) {
      expect((await sandbox.run(callOf(code))).error).toMatchObject({
        code: "RUNTIME_ERROR",
        name: "TypeError",
        line: 1
      })
    }
  })

  it("Each call of a handler has its own globals", async () => {
    const call = callOf(handler("globalThis.count = (globalThis.count ?? 0) + 1; return { body: count }"))
    const bodies = []
    for (let i = 0; i < 60; i++) bodies.push((await sandbox.run(call)).request?.body)
    expect(new Set(bodies)).toEqual(new Set([1]))
  })

  it("Teams with equal code share no environment", async () => {
    const code = handler("return { body: process.env }")
    const [a, b] = await Promise.all([
      sandbox.run(callOf(code, { teamId: "tm_a", env: { SECRET: "a" } })),
      sandbox.run(callOf(code, { teamId: "tm_b" }))
    ])
    expect([a.request?.body, b.request?.body]).toEqual([{ SECRET: "a" }, {}])
  })
})

describe("Result of a handler", () => {
  it.each(returns)("The result of a handler is checked (%s)", async (_, body, expected) => {
    expect(await returned(body)).toMatchObject(expected)
  })

  it("A text body stays a text, even if it looks like JSON", async () => {
    for (const body of ["plain", "", "{}", '"', "1", "\u2028é💧"]) {
      expect(await returned("return request", { body })).toMatchObject({ body })
      expect(await returned("return { body: request.body + '!' }", { body })).toMatchObject({ body: `${body}!` })
    }
  })

  it("Unusual input is kept if the code leaves it unchanged", async () => {
    const odd = { method: "PROPFIND", path: "/a?", query: "é", parsed_query: { é: "" } }
    expect(await returned("return request", odd)).toMatchObject(odd)
  })

  it("A returned body may be nested up to 512 levels", async () => {
    const nest = (depth: number) => `let b = 1; for (let i = 0; i < ${depth}; i++) b = [b]; return { body: b }`
    expect(await returned(nest(512))).toMatchObject({ method: "POST" })
    expect(await returned(nest(513))).toMatchObject(invalid)
    expect(await returned("return { body: '['.repeat(5000) + '\\\\\"['.repeat(999) }")).toMatchObject({
      method: "POST"
    })
  })
})

describe("Errors of code", () => {
  it.each(errors)("The code %j fails with its own error", async (code, expected) => {
    const execution = await sandbox.run(callOf(code))
    expect(execution.error).toMatchObject(expected)
    expect(execution).toMatchObject({ request: null, logLevel: "fatal" })
  })

  it("Syntax errors are found without running the code", async () => {
    expect(await sandbox.check("for (;;);")).toBe(null)
    expect(await sandbox.check("")).toBe(null)
    expect(await sandbox.check("addHandler(\n\n]")).toEqual({ message: "Unexpected token ']'", line: 3 })
    expect(await sandbox.check("`")).toMatchObject({ line: 1 })
    expect(await sandbox.check(`//${"x".repeat(1_048_576)}`)).toMatchObject({ line: null })
  })
})

describe("Log of a call", () => {
  it.each(levels)("The log level is that of the most severe line (%s)", async (code, level) => {
    expect((await sandbox.run(callOf(handler(`${code};return request`)))).logLevel).toBe(level)
  })

  it("The log shows values as text", async () => {
    const { logs } = await sandbox.run(
      callOf(
        handler(
          "console.log('a', 1, null, undefined, { b: [1] }, 2n, Symbol('s'), new TypeError('t')); console.warn(); return request"
        )
      )
    )
    expect(logs).toEqual([
      { type: "log", message: 'a 1 null undefined {"b":[1]} 2n Symbol(s) TypeError: t' },
      { type: "warn", message: "" }
    ])
  })

  it("The log keeps lines that were written before the code was stopped", async () => {
    const before = [{ type: "info", message: "before" }]
    expect(await sandbox.run(callOf(handler("console.info('before'); for (;;);")))).toMatchObject({
      error: { code: "TIMEOUT" },
      logs: before
    })
    // Large ones: they fill the memory long before the time is up, on any machine.
    const full = callOf(
      handler("console.info('before'); const a = []; for (;;) a.push(new Array(100_000).fill(a.length))")
    )
    expect(await sandbox.run(full)).toMatchObject({ error: { code: "MEMORY_LIMIT" }, logs: before })
  })
})

describe("Globals of code", () => {
  it.each(world)("The expression %s works in a handler", async (expression, expected) => {
    const { error, request } = await sandbox.run(callOf(handler(`return { body: ${expression} }`)))
    expect(error).toBe(null)
    expect(request?.body).toEqual(expected)
  })
})
