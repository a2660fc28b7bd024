import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { bodyLimits } from "@tidegate/json/JsonText"
import { callLimits } from "../src/CallLimits.ts"
import { callOf, handler, openSandbox } from "./openSandbox.ts"
import type { OpenSandbox } from "./openSandbox.ts"
import type { TransformRequest } from "../src/Call.ts"

let sandbox: OpenSandbox
beforeAll(async () => {
  sandbox = await openSandbox({ children: 2, spares: 0 })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

/** What the code returned, or the message of its error, which must be INVALID_OUTPUT. */
const ended = async (body: string, request: Partial<TransformRequest> = {}): Promise<TransformRequest | string> => {
  const { error, request: made } = await sandbox.run(callOf(handler(body), { request }))
  if (error === null) return made!
  expect(error.code).toBe("INVALID_OUTPUT")
  return error.message
}

describe("Limits of a transformation's result", () => {
  const edges: ReadonlyArray<
    readonly [what: string, code: (size: number) => string, most: number, refused: string | RegExp]
  > = [
    [
      "headers",
      (n) => `const headers = {}; for (let i = 0; i < ${n}; i++) headers['x' + i] = '1'; return { headers }`,
      callLimits.headers,
      `there are more than ${callLimits.headers} headers`
    ],
    [
      "values of one header",
      (n) => `return { headers: { x: Array(${n}).fill('1') } }`,
      callLimits.headers,
      `there are more than ${callLimits.headers} headers`
    ],
    [
      "bytes of a header's name",
      (n) => `return { headers: { ['x'.repeat(${n})]: '1' } }`,
      callLimits.headerNameBytes,
      /^the header name "x+" has more than 256 bytes$/
    ],
    [
      "bytes of a header's value",
      (n) => `return { headers: { a: '\\u00e9'.repeat(${n}) } }`,
      callLimits.headerValueBytes,
      `header "a" has more than ${callLimits.headerValueBytes} bytes`
    ],
    [
      "bytes of all headers",
      (n) => `return { headers: { a: 'x'.repeat(30000), b: 'x'.repeat(30000), c: 'x'.repeat(${n} - 60003) } }`,
      callLimits.headersBytes,
      `the headers have more than ${callLimits.headersBytes} bytes`
    ],
    [
      "bytes of the path",
      (n) => `return { path: '/' + 'x'.repeat(${n} - 1) }`,
      callLimits.pathBytes,
      `the path has more than ${callLimits.pathBytes} bytes`
    ],
    [
      "bytes of the path as it is sent",
      (n) => `return { path: '/' + '\\u00e9'.repeat(3) + 'x'.repeat(${n} - 19) }`,
      callLimits.pathBytes,
      `the path has more than ${callLimits.pathBytes} bytes`
    ],
    [
      "bytes of the query",
      (n) => `return { query: 'x'.repeat(${n}) }`,
      callLimits.queryBytes,
      `the query has more than ${callLimits.queryBytes} bytes`
    ],
    [
      "bytes of a query object as it is sent",
      (n) => `return { query: { a: '%'.repeat(3) + 'x'.repeat(${n} - 11) } }`,
      callLimits.queryBytes,
      `the query has more than ${callLimits.queryBytes} bytes`
    ],
    [
      "values of the query",
      (n) => `return { query: { a: Array(${n}).fill('1') } }`,
      callLimits.queryValues,
      `the query has more than ${callLimits.queryValues} values`
    ],
    [
      "values of the parsed query",
      (n) => `return { parsed_query: { a: Array(${n}).fill('1') } }`,
      callLimits.queryValues,
      `the query has more than ${callLimits.queryValues} values`
    ],
    [
      "values of the body",
      (n) => `return { body: Array(${n} - 1).fill(1) }`,
      callLimits.values,
      `the body has more than ${callLimits.values} values`
    ],
    [
      "members of the body",
      (n) => `return { body: Object.fromEntries(Array.from({ length: ${n} - 1 }, (_, i) => [i, 1])) }`,
      callLimits.values,
      `the body has more than ${callLimits.values} values`
    ],
    [
      "levels of the body",
      (n) => `let b = 1; for (let i = 0; i < ${n}; i++) b = [b]; return { body: { b }.b }`,
      callLimits.depth,
      `the body is nested deeper than ${callLimits.depth} levels`
    ]
  ]
  for (const [what, code, most, refused] of edges) {
    it(`A result may have ${most} ${what}, but not one more`, async () => {
      expect(await ended(code(most))).toMatchObject({ method: "POST" })
      const message = await ended(code(most + 1))
      if (typeof refused === "string") expect(message).toBe(refused)
      else expect(message).toMatch(refused)
    })
  }

  it("Input beyond a limit may be returned if the code leaves it unchanged", async () => {
    const large: Partial<TransformRequest> = {
      path: `/${"p".repeat(10_000)}`,
      query: "q&".repeat(9_000),
      parsed_query: { q: Array<string>(9_000).fill("") },
      headers: Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x${i}`, "1"])),
      body: Array<number>(199_000).fill(1)
    }
    expect(await ended("return request", large)).toMatchObject(large)
    expect(await ended("request.body = 1; return request", large)).toMatchObject({ ...large, body: 1 })
    expect(await ended("request.headers.more = '1'; return request", large)).toBe("there are more than 500 headers")
    expect(await ended("request.path += 'x'; return request", large)).toBe("the path has more than 2048 bytes")
    expect(await ended("request.query += 'x'; return request", large)).toBe("the query has more than 16384 bytes")
  })

  it("Log lines and errors are cut before they leave the sandbox process", async () => {
    const { error, logs, warnings } = await sandbox.run(
      callOf(
        handler("for (let i = 0; i < 150; i++) console.log('\\u20ac'.repeat(1e6)); throw new Error('e'.repeat(1e7))")
      )
    )
    expect(logs.length).toBe(callLimits.logLines)
    for (const { message } of logs) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(callLimits.logLineBytes)
    expect(warnings.length).toBe(2)
    expect(error).toMatchObject({ code: "RUNTIME_ERROR", message: "e".repeat(callLimits.logLineBytes) })
  })
})

describe("Code with an unusual beginning", () => {
  const handled = 'addHandler("transform", () => ({ body: 1 }))'
  const beginnings: ReadonlyArray<readonly [name: string, code: string]> = [
    ["an interpreter's name", `#!/usr/bin/env node\n${handled}`],
    ["an interpreter's name and nothing else", "#!"],
    ["an interpreter's name behind a space", ` #!/usr/bin/env node\n${handled}`],
    ["an interpreter's name behind a byte order mark", `\ufeff#!/usr/bin/env node\n${handled}`],
    ["an interpreter's name in the second line", `\n#!/usr/bin/env node\n${handled}`],
    ["the end of an HTML comment", `--> x\n${handled}`],
    ["the beginning of an HTML comment", `<!-- x\n${handled}`],
    ["a byte order mark", `\ufeff${handled}`],
    ["a directive", `"use strict";${handled}`],
    ["the end of a function", `})\n${handled};(function () {`],
    ["an import", `import "fs"\n${handled}`],
    ["an await", `await 1\n${handled}`]
  ]
  for (const [name, code] of beginnings) {
    it(`The check and the run of code agree on its syntax (${name})`, async () => {
      const problem = await sandbox.check(code)
      const { error } = await sandbox.run(callOf(code))
      expect(error?.code === "SYNTAX_ERROR").toBe(problem !== null)
      if (problem !== null) expect(error).toMatchObject({ message: problem.message, line: problem.line })
    })
  }

  it("Code behind an interpreter line runs, and its line numbers stay the same", async () => {
    expect((await sandbox.run(callOf(`#!/usr/bin/env node\n${handled}`))).request?.body).toBe(1)
    expect((await sandbox.run(callOf("#!/usr/bin/env node\n\nnull.x"))).error?.line).toBe(3)
    expect((await sandbox.check("#!/usr/bin/env node\n\na b"))?.line).toBe(3)
  })
})

it("A returned body may have as many values and levels as any other parsed body", () => {
  // The child has figures of its own, because it may read nothing but its folder.
  expect([callLimits.values, callLimits.depth]).toEqual([bodyLimits.values, bodyLimits.levels])
})
