import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { reading } from "@tidegate/model/Permission"
import { closed, describedAs, resolveMarks } from "@tidegate/resources/DescribedAs"
import { describe as describeOperation, failures } from "../src/contract/Operation.ts"

/** How the contract becomes its document: pure steps, each by itself. */

// As the generator of OpenAPI does.
const generated = (schema: Schema.Top): unknown =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }).schema

describe("Function describedAs", () => {
  const Shown = Schema.Union([Schema.Struct({ kind: Schema.Literal("a") }), Schema.Int])

  it("Function describedAs changes the described schema and not the accepted values", () => {
    const lax = Schema.Json.pipe(describedAs(Shown))
    expect(Schema.decodeUnknownSync(lax)({ kind: "b", more: [1] })).toEqual({ kind: "b", more: [1] })
    expect(resolveMarks(generated(lax))).toEqual({
      anyOf: [
        { type: "object", properties: { kind: { type: "string", enum: ["a"] } }, required: ["kind"] },
        { type: "integer" }
      ]
    })
  })

  it("Function describedAs replaces the whole described schema and keeps its description", () => {
    const text = Schema.String.check(Schema.isMaxLength(5)).pipe(describedAs(Schema.Int)).annotate({ description: "n" })
    expect(resolveMarks(generated(text))).toEqual({ type: "integer", description: "n" })
    expect(resolveMarks(generated(Schema.JsonObject.pipe(describedAs(Schema.Boolean))))).toEqual({ type: "boolean" })
  })

  it("Function describedAs refers to the components of the document", () => {
    expect(resolveMarks({ allOf: [{ "x-described-as": { $ref: "#/$defs/A" }, description: "an A" }] })).toEqual({
      $ref: "#/components/schemas/A",
      description: "an A"
    })
  })
})

describe("Object schemas", () => {
  const members = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }

  it("Object schema allows other members at every level unless it is closed", () => {
    const Inner = Schema.Struct({ a: Schema.String })
    expect(resolveMarks(generated(Inner))).toEqual(members)
    expect(resolveMarks(generated(Inner.check(closed)))).toEqual({ ...members, additionalProperties: false })
    expect(resolveMarks(generated(Schema.Array(Inner.check(closed).annotate({ description: "one" }))))).toEqual({
      type: "array",
      items: { ...members, additionalProperties: false, description: "one" }
    })
    expect(Schema.decodeUnknownSync(Inner.check(closed))({ a: "x", b: 1 })).toEqual({ a: "x" })
  })

  it("Closed object schema keeps its other checks", () => {
    const two = Schema.Struct({ a: Schema.String }).check(closed, Schema.isMinProperties(2))
    expect(resolveMarks(generated(two))).toEqual({ ...members, minProperties: 2, additionalProperties: false })
  })

  it("Object schema with a pattern for names takes no other names", () => {
    const Names = Schema.Record(Schema.String.check(Schema.isPattern(/^[a-z]+$/u)), Schema.String)
    const shape = { type: "object", patternProperties: { "^[a-z]+$": { type: "string" } } }
    expect(resolveMarks({ ...shape, additionalProperties: false })).toEqual({ ...shape, additionalProperties: false })
    expect(resolveMarks(generated(Names))).toMatchObject(shape)
  })

  it("Object schema with a rest type describes it in one place", () => {
    const rest = Schema.StructWithRest(Schema.Struct({ a: Schema.Int }), [Schema.Record(Schema.String, Schema.Int)])
    expect(resolveMarks(generated(rest))).toEqual({
      type: "object",
      properties: { a: { type: "integer" } },
      required: ["a"],
      additionalProperties: { type: "integer" }
    })
  })

  it("Examples in a schema stay unchanged", () => {
    const example = { additionalProperties: false, minimum: Number.MAX_SAFE_INTEGER, $ref: "#/$defs/x" }
    expect(resolveMarks({ type: "object", examples: [example], example, default: example })).toEqual({
      type: "object",
      examples: [example],
      example,
      default: example
    })
  })
})

describe("Described operations", () => {
  const json = (schema: object) => ({ content: { "application/json": { schema } } })

  it("Described operation has its own errors and examples only", () => {
    const described = describeOperation({
      body: { a: 1 },
      answer: { b: 2 },
      errors: ["NOT_FOUND"],
      permission: reading
    })({
      requestBody: json({}),
      responses: { 200: json({}), 404: json({}), 409: json({}), 418: json({}) }
    })
    expect(Object.keys(described.responses)).toEqual([
      "200",
      "400",
      "401",
      "403",
      "404",
      "413",
      "415",
      "429",
      "500",
      "503"
    ])
    expect(described.responses).toMatchObject({ 200: { content: { "application/json": { example: { b: 2 } } } } })
    expect(described.requestBody).toEqual({ content: { "application/json": { schema: {}, example: { a: 1 } } } })
  })

  it("Described errors name each code once, with the headers of their status", () => {
    expect(failures(["RATE_LIMITED", "NOT_FOUND", "RATE_LIMITED"])).toEqual({
      404: {
        description: "The team has no such resource.",
        ...json({ $ref: "#/components/schemas/NotFoundError" })
      },
      429: {
        description: "There were too many calls. `Retry-After` says when to try again.",
        headers: { "Retry-After": { description: "Seconds to wait", schema: { type: "integer", minimum: 0 } } },
        ...json({ $ref: "#/components/schemas/RateLimitedError" })
      }
    })
  })
})
