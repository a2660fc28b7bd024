import { describe, expect, it } from "@effect/vitest"
import { compileMapping, maxResolvedLength, type Resolved } from "@tidegate/interpolation/Mapping"
import { Result, Schema } from "effect"

const roots = ["trigger", "steps", "run", "item", "item_index"]

const compiled = (value: unknown) => Result.getOrThrow(compileMapping(value, roots))

const context = {
  trigger: {
    method: "POST",
    headers: { "x-order": "o_1", "content-type": "application/json" },
    body: {
      id: "o_1",
      total: 120.5,
      paid: true,
      none: null,
      "odd key": "odd",
      "a.b": "dotted",
      'quote"': "quoted",
      customer: { name: "Ada" },
      lines: [{ sku: "a", tags: ["x", "y"] }, { sku: "b", tags: [] }, { qty: 2 }],
      empty: []
    }
  },
  steps: { "fmt-name": { status: "succeeded", output: { result: "Ada" }, error: null } },
  run: { id: "wfr_1" },
  item: { n: 1 },
  item_index: 0
}

const resolved = (value: unknown): Resolved => compiled(value).resolve(context)
const valueOf = (value: unknown): unknown => {
  const outcome = resolved(value)
  return outcome.kind === "resolved" ? outcome.value : outcome.kind
}
const missingOf = (value: unknown): unknown => {
  const outcome = resolved(value)
  return outcome.kind === "resolved" ? outcome.missing : outcome.kind
}

describe("Template token", () => {
  const table: ReadonlyArray<readonly [text: string, expected: unknown]> = [
    ["{{trigger.body.id}}", "o_1"],
    ["{{ trigger.body.total }}", 120.5],
    ["{{\ttrigger.body.paid\n}}", true],
    ["{{trigger.body.customer}}", { name: "Ada" }],
    ["{{trigger.body.lines[0].sku}}", "a"],
    ["{{trigger.body.lines.1.sku}}", "b"],
    ["{{trigger.body.lines[-1].qty}}", 2],
    ["{{trigger.body.lines[-4]}}", null],
    ["{{trigger.body.lines[9].sku}}", null],
    ['{{trigger.body["odd key"]}}', "odd"],
    ['{{trigger.body["a.b"]}}', "dotted"],
    ['{{trigger.body["quote\\""]}}', "quoted"],
    ["{{trigger.body.lines[].sku}}", ["a", "b", null]],
    ["{{trigger.body.lines[].tags[]}}", [["x", "y"], [], null]],
    ["{{trigger.body.empty[].sku}}", []],
    ["{{trigger.body.customer[].name}}", null],
    ["{{trigger.headers.X-Order}}", "o_1"],
    ['{{trigger.headers["X-Order"]}}', "o_1"],
    ["{{steps.fmt-name.output.result}}", "Ada"],
    ["{{item}}", { n: 1 }],
    ["{{item_index}}", 0],
    // What is not there, or null, takes the value behind ??.
    ["{{trigger.body.nothing}}", null],
    ['{{trigger.body.nothing ?? "none"}}', "none"],
    ["{{trigger.body.nothing??7}}", 7],
    ["{{trigger.body.none ?? -1.5e2}}", -150],
    ["{{trigger.body.none ?? true}}", true],
    ["{{trigger.body.none ?? null}}", null],
    ['{{trigger.body.none ?? "}} \\u0041\\n"}}', "}} A\n"],
    ['{{trigger.body.id ?? "none"}}', "o_1"],
    // In a text.
    ["id {{trigger.body.id}}: {{trigger.body.total}}", "id o_1: 120.5"],
    [" {{trigger.body.total}}", " 120.5"],
    ["{{trigger.body.id}}{{trigger.body.id}}", "o_1o_1"],
    ["<{{trigger.body.nothing}}|{{trigger.body.none}}>", "<|>"],
    ["c={{trigger.body.customer}} l={{trigger.body.lines[].sku}}", 'c={"name":"Ada"} l=["a","b",null]'],
    ["\\{{trigger.body.id}} {{trigger.body.id}}", "{{trigger.body.id}} o_1"],
    ["no token } }} {", "no token } }} {"],
    ["", ""],
    // Only own members, of objects and of lists.
    ["{{trigger.body.constructor}}", null],
    ["{{trigger.body.__proto__}}", null],
    ["{{trigger.body.lines.length}}", null],
    ["{{trigger.body.id.length}}", null],
    ["{{trigger.toString}}", null]
  ]
  for (const [text, expected] of table) {
    it(`Template token ${JSON.stringify(text)} resolves to the expected value`, () => {
      expect(valueOf(text)).toEqual(expected)
    })
  }

  it("Value of a template token is not read as a template again", () => {
    expect(compiled("<{{trigger.a}}>").resolve({ trigger: { a: "{{trigger.b}}", b: 1 } })).toEqual({
      kind: "resolved",
      value: "<{{trigger.b}}>",
      missing: []
    })
  })
})

describe("Mapping", () => {
  it("Mapping keeps its shape and the types of its values", () => {
    expect(valueOf({ a: ["{{trigger.body.total}}", 1, null, { b: "x {{run.id}}" }], c: true, d: {}, e: [] })).toEqual({
      a: [120.5, 1, null, { b: "x wfr_1" }],
      c: true,
      d: {},
      e: []
    })
  })

  it("Mapping reports each token without a value once, except tokens with a default or null", () => {
    expect(
      missingOf({
        a: ["{{trigger.x}} {{trigger.y}}"],
        b: "{{trigger.body.none}}",
        c: '{{trigger.x ?? ""}}',
        d: { e: "{{trigger.x}}" }
      })
    ).toEqual(["a[0]", "d.e"])
  })

  it("Mapping can have any member names", () => {
    const value = JSON.parse('{"__proto__":{"a":"{{run.id}}"},"constructor":1}') as unknown
    const outcome = valueOf(value) as object
    expect(Object.keys(outcome)).toEqual(["__proto__", "constructor"])
    expect(Object.getPrototypeOf(outcome)).toBe(Object.prototype)
  })

  it("Mapping lists the paths that it refers to", () => {
    expect(compiled({ a: "{{steps.one.output}} {{run.id}}", b: ["{{item}}"] }).references).toEqual([
      { root: "steps", way: ["one", "output"], path: "a" },
      { root: "run", way: ["id"], path: "a" },
      { root: "item", way: [], path: "b[0]" }
    ])
  })
})

describe("Refused mappings", () => {
  const table: ReadonlyArray<readonly [value: unknown, path: string, message: RegExp]> = [
    [{ a: "x {{" }, "a", /a path like/],
    [{ a: "{{}}" }, "a", /a path like/],
    [["{{trigger.a"], "[0]", /not closed/],
    [{ a: { b: "{{trigger.a | upper}}" } }, "a.b", /more than a path/],
    ["{{trigger.a + 1}}", "", /more than a path/],
    ["{{trigger.f()}}", "", /more than a path/],
    ["{{trigger..a}}", "", /more than a path/],
    ["{{trigger[x]}}", "", /more than a path/],
    ["{{nowhere.a}}", "", /begins with one of trigger, steps/],
    ["{{__proto__.a}}", "", /begins with one of/],
    ["{{trigger.a ?? {}}}", "", /followed by/],
    ["{{trigger.a ?? 'x'}}", "", /followed by/],
    ['{{trigger.a ?? "\\x"}}', "", /followed by/],
    [`{{trigger.${"a".repeat(1_100)}}}`, "", /longer than 1024/],
    [`{{trigger["${"a".repeat(2_000_000)}"]}}`, "", /more than|longer than/],
    ["{{trigger.a}}".repeat(101), "", /more than 100 tokens/],
    [{ a: undefined }, "a", /not a JSON value/],
    [{ a: Number.NaN }, "a", /not a JSON value/]
  ]
  for (const [value, path, message] of table) {
    it(`Mapping ${JSON.stringify(value).slice(0, 60)} is refused with its path`, () => {
      const refused = compileMapping(value, roots)
      expect(Result.isFailure(refused) && refused.failure).toMatchObject({
        path,
        message: expect.stringMatching(message) as string
      })
    })
  }

  it("Mapping with more levels than allowed is refused", () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
    expect(Result.isSuccess(compileMapping(nested(20), roots))).toBe(true)
    expect(Result.isFailure(compileMapping(nested(21), roots))).toBe(true)
  })
})

describe("Size of a resolved mapping", () => {
  const long = "x".repeat(maxResolvedLength / 2)

  it.each([
    ["texts together", { a: "{{trigger.long}}", b: "{{trigger.long}}" }],
    ["a text written from several", "{{trigger.long}}{{trigger.long}}"],
    ["an object in a text", "v={{trigger.many}}"],
    ["an object as it is", "{{trigger.many}}"],
    ["a projection", "{{trigger.lines[].long}}"],
    ["a text that escapes make longer", "v={{trigger.quotes}}"]
  ])("Mapping refuses a result that is too large: %s", (_, value) => {
    const context = {
      trigger: {
        long,
        many: Array.from({ length: 200_000 }, () => "12345"),
        lines: [{ long }, { long }],
        quotes: ['"'.repeat(maxResolvedLength * 0.6)]
      }
    }
    expect(compiled(value).resolve(context)).toEqual({ kind: "too_large" })
  })

  it("Mapping refuses a long path under each element of a long list, even if it finds no value", () => {
    const deep = Array.from({ length: 300 }).reduce<unknown>((inner) => ({ a: inner }), {})
    const context = { trigger: { many: Array.from({ length: 30_000 }, () => deep) } }
    expect(compiled(`{{trigger.many[]${".a".repeat(60)}.b}}`).resolve(context)).toEqual({ kind: "too_large" })
    expect(compiled("{{trigger.many[].a.b}}").resolve(context).kind).toBe("resolved")
  })

  it("Mapping path may have as many steps as a body has levels", () => {
    expect(compiled(`{{trigger${".a".repeat(64)}}}`).references).toHaveLength(1)
    expect(Result.isFailure(compileMapping(`{{trigger${".a".repeat(65)}}}`, roots))).toBe(true)
  })

  it("Mapping accepts a result of the maximum size", () => {
    const outcome = compiled({ a: "{{trigger.long}}" }).resolve({ trigger: { long } })
    expect(outcome.kind).toBe("resolved")
  })
})

describe("Any mapping", () => {
  it.prop("Mapping text without braces stays unchanged", [Schema.String], ([text]) => {
    const plain = text.replaceAll("{", "")
    expect(valueOf(plain)).toBe(plain)
  })

  it.prop("Mapping keeps any value as a single token and writes it as JSON in text", [Schema.Json], ([value]) => {
    const token = compiled("{{trigger.v}}").resolve({ trigger: { v: value } })
    const text = compiled("<{{trigger.v}}>").resolve({ trigger: { v: value } })
    expect(token).toMatchObject({ kind: "resolved", missing: [] })
    expect(token.kind === "resolved" && token.value).toEqual(value)
    const written = value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)
    expect(text).toEqual({ kind: "resolved", value: `<${written}>`, missing: [] })
  })

  it.prop(
    "Mapping compiler never throws, and every compiled mapping resolves",
    [Schema.Json, Schema.String],
    ([value, text]) => {
      for (const written of [value, `{{${text}}}`, `{{trigger.${text} ?? "x"}}`, `{{trigger["${text}"]}}`]) {
        const mapping = compileMapping(written, roots)
        if (Result.isSuccess(mapping)) expect(mapping.success.resolve(context).kind).toBe("resolved")
        else expect(mapping.failure.message).not.toBe("")
      }
    }
  )
})
