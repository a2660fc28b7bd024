import { brokerTypes } from "@tidegate/model/BrokerSource"
import { connectors } from "@tidegate/connectors/Connectors"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { createHmac } from "node:crypto"
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { describe, expect } from "vitest"
import { rightBodies, wrongChanges, wrongMembers } from "../../security/control/WrongMembers.ts"
import { wrongRules } from "../../security/control/WrongRules.ts"
import type { Body } from "../../support/Gateway.ts"
import { request } from "../../support/RawHttp.ts"
import { exampleQuery, fill, it } from "./Present.ts"

/** The document that clients are built from says what the gateway does: everything in it is tried. */

/** Every object below a value. */
const objectsIn = (value: unknown): ReadonlyArray<Body> => {
  if (typeof value !== "object" || value === null) return []
  const inner = Object.values(value).flatMap(objectsIn)
  return Array.isArray(value) ? inner : [value, ...inner]
}

describe("OpenAPI document", () => {
  it("The OpenAPI document is packages/client/openapi.json, from which the client's types are made", async ({
    document
  }) => {
    const file = resolve(import.meta.dirname, "../../../packages/client/openapi.json")
    expect(document.json).toEqual(JSON.parse(await readFile(file, "utf8")))
  })

  it("The OpenAPI document passes the linter", async ({ document }) => {
    // The rules of the linter as a library: it asks nobody, and counts nothing.
    // The contract has `/requests/bulk_operations/{id}` beside `/requests/{id}/trace`: no id is called so.
    // A WebSocket is answered 101, and with no 2xx.
    const rules = { "no-ambiguous-paths": "off", "operation-2xx-response": "off" } as const
    const config = await createConfig({ extends: ["recommended-strict"], rules })
    const problems = await lintFromString({
      source: JSON.stringify(document.json),
      absoluteRef: "openapi.json",
      config
    })
    expect(problems.map(({ location, message, ruleId }) => [ruleId, message, location[0]?.pointer])).toEqual([])
  })

  it("Every operation and parameter has a name, a description and an example", ({ document }) => {
    expect(document.operations.length).toBeGreaterThanOrEqual(60)
    for (const { id, method, path, spec } of document.operations) {
      expect(id, `${method} ${path}`).toMatch(/^[a-z]+(?:[A-Z][a-z]+)*$/)
      expect(spec.summary, id).toMatch(/^[A-Z].{5,}/)
      expect(spec.description, id).toMatch(/^.{10,}\.$/)
      for (const parameter of spec.parameters) {
        if (parameter.$ref !== undefined) continue
        expect(parameter.description, `${id} ${parameter.name}`).toMatch(/.{5,}/)
        if (parameter.in === "path") expect(parameter.example, `${id} ${parameter.name}`).toBeDefined()
      }
      const media = [success(spec).content, spec.requestBody?.content ?? {}].flatMap((content) =>
        Object.values<Body>(content)
      )
      if (id !== "downloadRequestBody") {
        expect(media.filter(({ example }) => example !== undefined).length, id).toBeGreaterThanOrEqual(
          method === "GET" || spec.requestBody === undefined ? 1 : 2
        )
      }
    }
    expect(new Set(document.operations.map(({ id }) => id)).size).toBe(document.operations.length)
  })

  it("The OpenAPI document describes tags, security, servers and the team header", ({ document }) => {
    const { components, info, servers, tags } = document.json
    for (const { description, name } of tags) expect(description, name).toMatch(/.{10,}/)
    expect(tags.map(({ name }: Body) => name)).toContain("Ingress")
    expect(servers.map(({ url }: Body) => url)).toEqual(["/v1", "/"])
    expect(info.license.identifier).toBe("Apache-2.0")
    expect(components.securitySchemes.bearer.description).toMatch(/API key/)
    expect(components.securitySchemes.session.scheme).toBe("bearer")
    expect(components.parameters.TeamId).toMatchObject({ name: "x-team-id", in: "header" })
    expect(components.parameters.IdempotencyKey).toMatchObject({ name: "Idempotency-Key", in: "header" })
    expect(components.parameters.IfNoneMatch).toMatchObject({ name: "If-None-Match", in: "header" })
    for (const { id, method, spec } of document.operations.filter(({ path }) => !path.startsWith("/e/"))) {
      const shared = JSON.stringify(spec.parameters.filter((one: Body) => one.$ref !== undefined))
      expect(shared.includes("IdempotencyKey"), id).toBe(method === "POST" && spec.security.length > 0)
      expect(shared.includes("IfNoneMatch"), id).toBe(spec.responses["304"] !== undefined)
    }
    for (const [path, item] of Object.entries<Body>(document.json.paths)) {
      const team = JSON.stringify(item.parameters ?? "")
      expect(team.includes("TeamId"), path).toBe(!path.startsWith("/e/"))
    }
  })

  it("The OpenAPI document contains no internal annotations", ({ document }) => {
    const text = JSON.stringify(document.json)
    expect(text).not.toMatch(/x-described-as|x-closed|\$defs|Infinity|NaN|9007199254740991/)
  })

  it("Schemas of config, rules and data are not bare objects", ({ document }) => {
    // What an operation of the formatter takes and makes, its catalog says.
    const described = Object.entries(document.json.components.schemas).filter(([name]) => !name.startsWith("Formatter"))
    const bare = objectsIn(Object.fromEntries(described)).filter(
      (schema) =>
        schema.type === "object" &&
        ["properties", "additionalProperties", "patternProperties", "maxProperties"].every((name) => !(name in schema))
    )
    expect(bare).toEqual([])
    const { SourceWrite, DestinationWrite, ConnectionRule } = document.json.components.schemas
    expect([SourceWrite, DestinationWrite, ConnectionRule].map(({ anyOf }) => anyOf.length)).toEqual([
      14 + brokerTypes.length,
      connectors.length,
      5
    ])
  })

  it("The schema of each written name has its maximum length", ({ document }) => {
    const written = Object.entries<Body>(document.json.components.schemas).flatMap(([schema, { properties }]) =>
      /(?:Write|Patch)$/.test(schema) && properties?.name !== undefined ? [[schema, properties.name] as const] : []
    )
    expect(written.map(([schema]) => schema)).toEqual(
      expect.arrayContaining(["ProfileWrite", "TeamWrite", "TeamPatch", "ProjectKeyWrite", "ProjectKeyPatch"])
    )
    for (const [schema, name] of written) {
      const stated = { least: name.minLength, most: name.maxLength, pattern: name.pattern }
      if (schema.startsWith("Filter"))
        expect(stated, schema).toMatchObject({ pattern: expect.stringContaining("{1,155}") })
      else expect(stated, schema).toEqual({ least: 1, most: expect.any(Number), pattern: "\\S" })
    }
    const { ActionWrite, TeamMemberWrite } = document.json.components.schemas
    expect(ActionWrite.properties.provider_key.pattern).toBe("^[a-z0-9_.]{1,96}$")
    expect(TeamMemberWrite.properties.email.pattern).toContain("@")
  })

  it("Each operation lists exactly the error codes that it can return", ({ document }) => {
    const codes = (id: string, status: number): ReadonlyArray<string> => {
      const schema = document.operation(id).spec.responses[status]?.content["application/json"].schema
      return (schema?.anyOf ?? (schema === undefined ? [] : [schema])).map(
        ({ $ref }: Body) => document.json.components.schemas[$ref.split("/").at(-1)].properties.code.enum[0]
      )
    }
    expect(codes("getSource", 404)).toEqual(["NOT_FOUND"])
    expect(codes("getSource", 409)).toEqual([])
    expect(codes("listSources", 404)).toEqual([])
    expect(codes("getSource", 413)).toEqual([])
    expect(codes("createConnection", 400)).toEqual(
      expect.arrayContaining(["INVALID_JSON", "VALIDATION_ERROR", "RULE_INVALID"])
    )
    expect(codes("deleteTransformation", 409)).toEqual(["RESOURCE_IN_USE"])
    expect(codes("send", 403)).toEqual(["SOURCE_DISABLED", "SERVICE_WORKER_REFUSED"])
    for (const { id, path, spec } of document.operations) {
      const own = path.startsWith("/e/")
        ? ["SOURCE_AUTH_FAILED"]
        : path === "/auth/idp/login"
          ? ["INVALID_ID_TOKEN"]
          : []
      const ofBins = path.startsWith("/public-bins/") ? ["INVALID_BIN_TOKEN"] : []
      const ofCallers = spec.security.length > 0 ? ["UNAUTHENTICATED", "INVALID_API_KEY", "SESSION_EXPIRED"] : own
      const expected = [...ofCallers, ...ofBins]
      expect(codes(id, 401), id).toEqual(expected)
      expect(codes(id, 429), id).toEqual(["RATE_LIMITED"])
    }
  })
})

/**
 * Nobody can write an ID token or a provider's answer down that is valid for ever, a WebSocket is no call, and accounts need their
 * provider.
 */
const others = new Set([
  "login",
  "watchBin",
  "connectTunnel",
  "showDestinationConsent",
  "endDestinationConsent",
  "endProviderAccountConsent",
  "connectProviderAccount"
])

const success = (spec: Body): Body => Object.entries<Body>(spec.responses).find(([status]) => Number(status) < 300)?.[1]

describe("Examples of the OpenAPI document", () => {
  it("Every example is accepted and answered with the stated status and shape", async ({
    document,
    gateway,
    presentFor,
    send
  }) => {
    for (const operation of document.operations) {
      const { id, spec } = operation
      if (others.has(id)) continue
      const ids = await presentFor(operation)
      const example = fill(spec.requestBody?.content["application/json"].example ?? null, ids)
      // Names are unique, and another operation's example has had this one.
      if (example?.name !== undefined) example.name = gateway.name(example.name)
      // An upsert creates, and then updates.
      for (let times = id.startsWith("upsert") ? 2 : 1; times > 0; times--) {
        const { status, text } = await send(operation, ids, example ?? undefined)
        const stated = Number(Object.keys(spec.responses).find((status) => Number(status) < 300))
        expect(status, `${id}: ${text.slice(0, 500)}`).toBe(stated)
        if (id === "downloadRequestBody") continue
        expect(document.bodyFault(operation, JSON.parse(text), status), id).toBeNull()
        expect(document.bodyFault(operation, success(spec).content["application/json"].example, status), id).toBeNull()
      }
      if (spec.requestBody !== undefined && !id.startsWith("send")) {
        expect(document.bodyFault(operation, example), id).toBeNull()
      }
    }
  })

  it("The example of every write schema is accepted", async ({ document, gateway, present }) => {
    const kinds: Readonly<Record<string, string>> = {
      Source: "sources",
      Destination: "destinations",
      Connection: "connections",
      Transformation: "transformations"
    }
    let tried = 0
    for (const [name, schema] of Object.entries<Body>(document.json.components.schemas)) {
      const kind = kinds[/(Source|Destination|Connection|Transformation)Write$/.exec(name)?.[1] ?? ""]
      for (const example of kind === undefined ? [] : (schema.examples ?? [])) {
        const body = { ...fill(example, present), name: gateway.name("schema-example") }
        expect((await gateway.call("POST", `/${kind}`, body)).status, name).toBe(200)
        tried++
      }
    }
    expect(tried).toBeGreaterThanOrEqual(5)
  })

  it("A request that matches the example source's signature is verified", async ({ document, gateway }) => {
    const { example } = document.operation("createSource").spec.requestBody.content["application/json"]
    const source = await gateway.api("POST", "/sources", { ...example, name: gateway.name("signed") })
    const body = JSON.stringify(document.operation("send").spec.requestBody.content["application/json"].example)
    const { auth } = example.config
    const signature = auth.prefix + createHmac("sha256", auth.webhook_secret_key).update(body).digest("hex")
    const path = `/e/${source.id}`
    const genuine = await request(gateway.port, { path, headers: [[auth.header_key, signature]], body })
    expect(genuine.status).toBe(200)
    const forged = await request(gateway.port, { path, headers: [[auth.header_key, "sha256=00"]], body })
    expect([forged.status, document.bodyFault(document.operation("send"), JSON.parse(forged.body), 401)]).toEqual([
      401,
      null
    ])
  })

  it("Stated parameter values are accepted, and values outside the limits are refused or clamped", async ({
    document,
    gateway,
    present
  }) => {
    let tried = 0
    for (const operation of document.operations.filter(
      ({ method, spec }) => method === "GET" && spec.security.length > 0
    )) {
      const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        fill(operation.spec.parameters.find((parameter: Body) => parameter.name === name).example, present)
      )
      const status = async (name: string, value: unknown): Promise<number> => {
        tried++
        const others = exampleQuery(operation.spec, present, name)
        return (await gateway.call("GET", `${path}?${name}=${encodeURIComponent(String(value))}&${others}`)).status
      }
      if (operation.id === "downloadRequestBody") continue
      for (const { description, in: place, name, required, schema } of operation.spec.parameters) {
        // The team is looked at before anything else.
        if (place !== "query" || name === "team_id") continue
        const at = `${operation.id} ${name}`
        expect(required, at).toBe(false)
        const words = schema.enum ?? schema.items?.enum ?? []
        const isClamped = schema.type === "integer" && description.includes(`less than ${schema.minimum} is taken as`)
        const good = [
          ...(isClamped ? [schema.minimum - 1] : []),
          ...words,
          ...(schema.type === "boolean" ? [true, false] : []),
          schema.default,
          schema.minimum,
          schema.maximum
        ]
        for (const value of good.filter((value) => value !== undefined))
          expect(await status(name, value), `${at}=${value}`).toBe(200)
        const bad = [
          ...(words.length > 0 || schema.type === "boolean" ? ["nonsense"] : []),
          ...(schema.type === "integer" ? ["1.5", "1e2", "+5", "x"] : []),
          ...(schema.type === "integer" && !isClamped ? [schema.minimum - 1] : []),
          ...(schema.maxLength === undefined ? [] : ["x".repeat(schema.maxLength + 1)])
        ]
        for (const value of bad) expect(await status(name, value), `${at}=${value}`).toBe(400)
      }
    }
    expect(tried).toBeGreaterThanOrEqual(200)
  })
})

describe("Write bodies", () => {
  /** Settings that a provider's sources may have, where any text will not do. */
  const settings: Readonly<Record<string, string>> = {
    webhook_secret_key: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
    username: "user",
    webhook_id: "1JE4291016473214C",
    topic_arn: "arn:aws:sns:eu-west-1:123456789012:orders"
  }
  const publicKeys: Readonly<Record<string, string>> = {
    DISCORD: "a".repeat(64),
    DISCORD_EVENTS: "a".repeat(64),
    SENDGRID:
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
  }

  it("Every source type accepts the settings that its schema requires", async ({ document, gateway }) => {
    const { schemas } = document.json.components
    const create = document.operation("createSource")
    let types = 0
    // The last ones have no senders, and so nothing to verify them by: they are created as their examples say, for another
    // team, because a team has one system source.
    const another = await gateway.forTeam()
    const [, ...others] = schemas.SourceWrite.anyOf
    for (const { $ref } of others.splice(-3 - brokerTypes.length)) {
      const [example] = schemas[$ref.split("/").at(-1)].examples
      const made = await another.call("POST", "/sources", { ...example, name: gateway.name("typed") })
      expect([made.status, made.body.message]).toEqual([200, undefined])
      expect(document.bodyFault(create, made.body, 200)).toBeNull()
    }
    for (const { $ref } of others) {
      const { config, type } = schemas[$ref.split("/").at(-1)].properties
      const own = schemas[config.anyOf[0].$ref.split("/").at(-1)]
      const auth = schemas[own.properties.auth.$ref.split("/").at(-1)]
      for (const name of type.enum) {
        types++
        const required: ReadonlyArray<string> = auth.required ?? []
        const given = Object.fromEntries(
          required.map((setting) => [
            setting,
            setting === "public_key" ? publicKeys[name] : (settings[setting] ?? "text-of-the-provider")
          ])
        )
        // Where nothing is required: what is given all the same.
        const other = name === "AWS_SNS" ? { topic_arn: settings["topic_arn"] } : { webhook_secret_key: "secret" }
        const body = {
          name: gateway.name("typed"),
          type: name,
          config: { auth: required.length > 0 ? given : other }
        }
        expect(document.bodyFault(create, body), name).toBeNull()
        const made = await gateway.call("POST", "/sources", body)
        expect([made.status, made.body.message], name).toEqual([200, undefined])
        expect(document.bodyFault(create, made.body, 200), name).toBeNull()
        for (const setting of required) {
          const { [setting]: _, ...rest } = given
          const lacking = {
            ...body,
            name: gateway.name("lacking"),
            config: { auth_type: own.properties.auth_type.enum[0], auth: rest }
          }
          expect(document.bodyFault(create, lacking), `${name} without ${setting}`).not.toBeNull()
          expect((await gateway.call("POST", "/sources", lacking)).status, `${name} without ${setting}`).toBe(400)
        }
      }
    }
    expect(types).toBeGreaterThanOrEqual(60)
  })

  it("Valid bodies are accepted by the schema", async ({ document }) => {
    for (const { kind, right } of rightBodies) {
      const operation = document.operations.find(({ method, path }) => method === "POST" && path === `/${kind}`)!
      expect(
        document.bodyFault(operation, JSON.parse(JSON.stringify(right).replaceAll(/\{(\w+)\}/g, "$1_1"))),
        kind
      ).toBeNull()
    }
  })

  it("Invalid bodies are refused by the schema, except for errors that no schema can express", ({ document }) => {
    const cases = [...wrongMembers, ...wrongChanges, ...wrongRules]
    const missed = cases.filter(({ body, method, path }) => {
      const operation = document.operations.find(
        (one) => one.method === method && new RegExp(`^/v1${one.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
      )!
      const parsed = JSON.parse(String(body).replaceAll(/\{(source|destination|connection|transformation)\}/g, "$1_1"))
      return document.bodyFault(operation, parsed) === null
    })
    // What a text means (a pattern, a template, a time), what else is written, and what is stored.
    expect(missed.length / cases.length).toBeLessThan(0.25)
    // The schema always refuses values of another type.
    expect(missed.map(({ name }) => name).filter((name) => / (?:1|true|\[\]|"")$/.test(name))).toEqual([
      "config.chat_defer_ephemeral true"
    ])
  })
})
