import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { reading } from "@tidegate/model/Permission"
import { closed, describedAs, resolveMarks } from "@tidegate/resources/DescribedAs"
import { describe as describeOperation, failures } from "../src/contract/Operation.ts"

/** How the contract becomes its document: pure steps, each by itself. */

// As the generator of OpenAPI does.
const generated = (schema: Schema.Top): unknown =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }).schema

describe("describedAs", () => {
  const Shown = Schema.Union([Schema.Struct({ kind: Schema.Literal("a") }), Schema.Int])

  it("changes what is described and not what is taken", () => {
    const lax = Schema.Json.pipe(describedAs(Shown))
    expect(Schema.decodeUnknownSync(lax)({ kind: "b", more: [1] })).toEqual({ kind: "b", more: [1] })
    expect(resolveMarks(generated(lax))).toEqual({
      anyOf: [
        { type: "object", properties: { kind: { type: "string", enum: ["a"] } }, required: ["kind"] },
        { type: "integer" }
      ]
    })
  })

  it("replaces whatever stood there, and keeps what is said of it", () => {
    const text = Schema.String.check(Schema.isMaxLength(5)).pipe(describedAs(Schema.Int)).annotate({ description: "n" })
    expect(resolveMarks(generated(text))).toEqual({ type: "integer", description: "n" })
    expect(resolveMarks(generated(Schema.JsonObject.pipe(describedAs(Schema.Boolean))))).toEqual({ type: "boolean" })
  })

  it("points to the components of the document", () => {
    expect(resolveMarks({ allOf: [{ "x-described-as": { $ref: "#/$defs/A" }, description: "an A" }] })).toEqual({
      $ref: "#/components/schemas/A",
      description: "an A"
    })
  })
})

describe("objects", () => {
  const members = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }

  it("are open unless they are closed, at every level", () => {
    const Inner = Schema.Struct({ a: Schema.String })
    expect(resolveMarks(generated(Inner))).toEqual(members)
    expect(resolveMarks(generated(Inner.check(closed)))).toEqual({ ...members, additionalProperties: false })
    expect(resolveMarks(generated(Schema.Array(Inner.check(closed).annotate({ description: "one" }))))).toEqual({
      type: "array",
      items: { ...members, additionalProperties: false, description: "one" }
    })
    expect(Schema.decodeUnknownSync(Inner.check(closed))({ a: "x", b: 1 })).toEqual({ a: "x" })
  })

  it("with other checks keep these", () => {
    const two = Schema.Struct({ a: Schema.String }).check(closed, Schema.isMinProperties(2))
    expect(resolveMarks(generated(two))).toEqual({ ...members, minProperties: 2, additionalProperties: false })
  })

  it("whose names follow a pattern take no others", () => {
    const Names = Schema.Record(Schema.String.check(Schema.isPattern(/^[a-z]+$/u)), Schema.String)
    const shape = { type: "object", patternProperties: { "^[a-z]+$": { type: "string" } } }
    expect(resolveMarks({ ...shape, additionalProperties: false })).toEqual({ ...shape, additionalProperties: false })
    expect(resolveMarks(generated(Names))).toMatchObject(shape)
  })

  it("with a rest say so in one place", () => {
    const rest = Schema.StructWithRest(Schema.Struct({ a: Schema.Int }), [Schema.Record(Schema.String, Schema.Int)])
    expect(resolveMarks(generated(rest))).toEqual({
      type: "object",
      properties: { a: { type: "integer" } },
      required: ["a"],
      additionalProperties: { type: "integer" }
    })
  })

  it("examples are left as they are", () => {
    const example = { additionalProperties: false, minimum: Number.MAX_SAFE_INTEGER, $ref: "#/$defs/x" }
    expect(resolveMarks({ type: "object", examples: [example], example, default: example })).toEqual({
      type: "object",
      examples: [example],
      example,
      default: example
    })
  })
})

describe("operations", () => {
  const json = (schema: object) => ({ content: { "application/json": { schema } } })

  it("have their own failures of all that are declared, and their examples", () => {
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

  it("name each code once, with the headers of its status", () => {
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
