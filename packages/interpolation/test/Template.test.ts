import { describe, expect, it } from "@effect/vitest"
import { type Escape, headerEscape, jsonEscape, textEscape, xmlEscape } from "@tidegate/interpolation/Escape"
import { compileTemplate, maxRenderedLength, type TemplateRoots } from "@tidegate/interpolation/Template"
import { Arbitrary, Result, Schema } from "effect"

const roots = {
  body: "any",
  headers: "headers",
  query: "any",
  path: "none",
  method: "none",
  request: ["id"]
} as const satisfies TemplateRoots<string>

type Roots = { readonly [root in keyof typeof roots]?: unknown }

const rendered = (template: string, values: Roots, escape: Escape = textEscape): string | null =>
  Result.getOrThrow(compileTemplate(template, roots)).render((root) => values[root], escape)

const request: Roots = {
  body: {
    order: { id: 7, "odd key": "odd", none: null, ok: true },
    items: [{ sku: "a" }, { sku: "b" }],
    text: 'a "quoted"\n\\ <b>&\u2028',
    list: [1, "x"]
  },
  headers: { "x-tenant": "acme", "x-multi": ["a", "b"] },
  query: Object.assign(Object.create(null), { a: "1" }),
  path: "/orders/7",
  method: "POST",
  request: { id: "req_1" }
}

describe("Template placeholders", () => {
  const table: ReadonlyArray<readonly [template: string, expected: string]> = [
    ["", ""],
    ["plain } text }} { with braces", "plain } text }} { with braces"],
    ["{{body.order.id}}", "7"],
    ["{{ body.order.id }}", "7"],
    ["{{\tbody.order.id\n}}", "7"],
    ["<{{path}}|{{method}}|{{request.id}}>", "</orders/7|POST|req_1>"],
    ["{{headers.x-tenant}} {{headers.X-Tenant}} {{query.a}}", "acme acme 1"],
    ["{{body.items[1].sku}}{{body.items.0.sku}}", "ba"],
    ["{{body.order['odd key']}}{{body.order[\"odd key\"]}}", "oddodd"],
    ["{{body.order.ok}}", "true"],
    ["{{body.list}}", '[1,"x"]'],
    ["{{body.items[0]}}", '{"sku":"a"}'],
    ["{{headers.x-multi}} {{headers.x-multi.1}}", '["a","b"] b'],
    // What is not there, or null, is nothing.
    ["[{{body.missing.deep}}{{body.order.none}}{{query.b}}{{headers.none}}{{body.items[9]}}{{body.items.sku}}]", "[]"],
    ["[{{body.text.length}}{{body.items.length}}{{path}}]", "[/orders/7]"],
    // Not from a prototype either.
    ["[{{body.constructor}}{{body.__proto__}}{{body.toString}}{{body.items.map}}{{query.hasOwnProperty}}]", "[]"],
    // Nothing that was rendered is read as a template again.
    ["{{body}}}", "{{path}}}"]
  ]
  for (const [template, expected] of table) {
    it(`Template ${JSON.stringify(template)} renders as expected`, () => {
      const values = template === "{{body}}}" ? { ...request, body: "{{path}}" } : request
      expect(rendered(template, values)).toBe(expected)
    })
  }

  it("Template with an invalid placeholder is refused with its position", () => {
    const refused: ReadonlyArray<readonly [template: string, at: number, message: RegExp]> = [
      ["a {{body", 2, /not closed/],
      ["{{path}} {{ body }", 9, /not closed/],
      ["{{}}", 0, /empty/],
      ["ab{{  }}", 2, /empty/],
      ["{{boddy.id}}", 0, /begins with one of body, headers, query, path, method, request/],
      ["{{env.SECRET}}", 0, /begins with one of/],
      ["{{__proto__}}", 0, /begins with one of/],
      ["{{constructor.name}}", 0, /begins with one of/],
      ["{{body..id}}", 0, /not a path/],
      ["{{body.id | upcase}} {{body.}}", 21, /not a path/],
      ["{{[0]}}", 0, /not a path/],
      ["{{'body'}}", 0, /begins with one of/],
      ["{{{body}}}", 0, /begins with one of/],
      ["{{#each body}}", 0, /begins with one of/],
      ["{{body.items[*].sku}}", 0, /one place/],
      ["{{body.items[$index]}}", 0, /one place/],
      ["{{body.items[-1]}}", 0, /not a path/],
      ["{{path.length}}", 0, /path is a text/],
      ["{{method[0]}}", 0, /method is a text/],
      ["{{request}}", 0, /only request\.id/],
      ["{{request.team_id}}", 0, /only request\.id/],
      ["{{request.id.length}}", 0, /only request\.id/],
      [`{{body.${"a".repeat(300)}}}`, 0, /longer than 256/]
    ]
    for (const [template, at, message] of refused) {
      const result = compileTemplate(template, roots)
      if (Result.isSuccess(result)) expect.fail(`accepted: ${template}`)
      expect(result.failure.at, template).toBe(at)
      expect(result.failure.message, template).toMatch(message)
    }
  })

  it("Template reads only the roots that it names", () => {
    const read: Array<string> = []
    Result.getOrThrow(compileTemplate("{{path}} {{query.a}}", roots)).render((root) => {
      read.push(root)
      return request[root]
    }, textEscape)
    expect(read).toStrictEqual(["path", "query"])
  })
})

describe("Template escapes", () => {
  it("JSON template writes a value inside a string or as a JSON value", () => {
    const table: ReadonlyArray<readonly [template: string, expected: unknown]> = [
      ['{"id":"{{body.order.id}}"}', { id: "7" }],
      ['{"id":{{body.order.id}}}', { id: 7 }],
      ['{"t":"<{{body.text}}>"}', { t: '<a "quoted"\n\\ <b>&\u2028>' }],
      ['{"t":{{body.text}}}', { t: 'a "quoted"\n\\ <b>&\u2028' }],
      ['{"t":"{{body.missing}}","u":{{body.missing}},"v":{{body.order.none}}}', { t: "", u: null, v: null }],
      ['{"l":"{{body.list}}","m":{{body.list}}}', { l: '[1,"x"]', m: [1, "x"] }],
      ['{"{{method}}":1}', { POST: 1 }],
      ['{"a":"\\"{{path}}\\\\","b":{{path}}}', { a: '"/orders/7\\', b: "/orders/7" }],
      ["\"{{body.order['odd key']}}\"", "odd"],
      ['{{body.order["odd key"]}}', "odd"]
    ]
    for (const [template, expected] of table) {
      expect(JSON.parse(rendered(template, request, jsonEscape) ?? ""), template).toStrictEqual(expected)
    }
  })

  const property = { arbitrary: { runs: 1_000, size: 60 } }

  it.prop(
    "JSON template is valid JSON with the same value for any value",
    { body: Arbitrary.schema(Schema.Json) },
    ({ body }) => {
      const template = '{"text":"a{{body}}z","value":{{body}},"{{path}}":[{{body}},"{{body}}"]}'
      const text = typeof body === "string" ? body : body === null ? "" : JSON.stringify(body)
      const value = JSON.parse(JSON.stringify(body))
      expect(JSON.parse(rendered(template, { body, path: '"\\' }, jsonEscape) ?? "")).toEqual({
        text: `a${text}z`,
        value,
        '"\\': [value, text]
      })
    },
    property
  )

  it("JSON template escapes half surrogate pairs, so that the text can be sent", () => {
    const text = rendered('["{{body}}",{{body}}]', { body: "\ud800" }, jsonEscape) ?? ""
    expect(text.isWellFormed()).toBe(true)
    expect(JSON.parse(text)).toStrictEqual(["\ud800", "\ud800"])
  })

  it("XML template escapes texts and attributes and replaces invalid characters", () => {
    const body = `</a><b c="'">&amp;\u0000\u0008\ud800\ufffe🙂\n]]>`
    expect(rendered("<a b='{{body}}'/>", { body }, xmlEscape)).toBe(
      "<a b='&lt;/a&gt;&lt;b c=&quot;&#39;&quot;&gt;&amp;amp;\ufffd\ufffd\ufffd\ufffd🙂\n]]&gt;'/>"
    )
  })

  it.prop(
    "XML template leaves no markup and loses no character that XML allows",
    { body: Arbitrary.schema(Schema.String) },
    ({ body }) => {
      const text = rendered("{{body}}", { body }, xmlEscape) ?? ""
      expect(text).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/)
      const plain = text
        .replaceAll("&lt;", "<")
        .replaceAll("&gt;", ">")
        .replaceAll("&quot;", '"')
        .replaceAll("&#39;", "'")
        .replaceAll("&amp;", "&")
      expect(plain.length).toBe(body.length)
      for (let i = 0; i < plain.length; i++) {
        if (plain[i] !== "\ufffd") expect(plain[i]).toBe(body[i])
      }
    },
    property
  )

  it("Header template cannot start a new line", () => {
    expect(rendered("a {{body}}", { body: "x\r\nset-cookie: y\u0000\u2028ü" }, headerEscape)).toBe("a xset-cookie: yü")
  })
})

describe("Length of rendered templates", () => {
  const body = "x".repeat(1_000)

  it("Rendered template has a maximum length and is refused instead of cut", () => {
    expect(rendered("{{body}}".repeat(262), { body })?.length).toBe(262_000)
    expect(rendered("{{body}}".repeat(263), { body })).toBeNull()
    expect(rendered("{{body}}", { body: "x".repeat(maxRenderedLength) })?.length).toBe(maxRenderedLength)
    expect(rendered("{{body}}", { body: "x".repeat(maxRenderedLength + 1) })).toBeNull()
    expect(rendered("{{body}} ", { body: "x".repeat(maxRenderedLength) })).toBeNull()
    expect(rendered('"{{body}}"', { body: '"'.repeat(200_000) }, jsonEscape)).toBeNull()
    expect(rendered("{{body}}", { body: Array.from({ length: 200_000 }, () => 1) }, jsonEscape)).toBeNull()
  })

  it("Rendering ends with the first value that exceeds the maximum length", () => {
    let reads = 0
    const template = Result.getOrThrow(compileTemplate("{{body}}".repeat(5_000), roots))
    const text = template.render(() => {
      reads++
      return "x".repeat(maxRenderedLength + 1)
    }, textEscape)
    expect([text, reads]).toStrictEqual([null, 1])
  })

  it("Value that is nested too deeply for the stack is refused without an exception", () => {
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
      ['[{"0":', "}]"]
    ] as const) {
      const deep: unknown = JSON.parse(open.repeat(300_000) + "1" + close.repeat(300_000))
      for (const escape of [textEscape, jsonEscape])
        expect(rendered("{{body}}", { body: deep }, escape) === null).toBe(true)
    }
  })
})
