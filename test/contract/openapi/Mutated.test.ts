import { Context, Random } from "effect"
import { OpenApi } from "effect/http-api"
import { Pool } from "undici"
import { describe, expect } from "vitest"
import { Api } from "../../../packages/api/src/contract/Api.ts"
import type { Body } from "../../support/Gateway.ts"
import type { Document, Operation } from "./Document.ts"
import { type Call, mutations } from "./Mutations.ts"
import { callerKey, exampleHeaders, exampleQuery, fill, it as presentIt, siteAdmin } from "./Present.ts"

/*
 * Every operation of the document, with its example and with everything about it changed: the answer is one that the operation states, in the
 * shape that it states; it is never a fault of the gateway, and never repeats a secret.
 */

/** What secrets have in them in every body that is sent. */
const planted = "planted-secret"
const secretName = /secret|password|token|private_key|api_key|credential/
const withSecrets = (body: Body): Body =>
  JSON.parse(JSON.stringify(body), (name, value: unknown) =>
    typeof value === "string" && secretName.test(name) ? `${planted}-${name}-0123456789` : value
  )

const draw = { next: () => Context.get(Context.empty(), Random.Random).nextDoubleUnsafe() }

const it = presentIt
  .extend("settings", { scope: "file" }, () => ({ TIDEGATE_SITE_ADMINS: siteAdmin, TIDEGATE_API_RATE_LIMIT: "0" }))
  .extend("pool", { scope: "file" }, async ({ gateway }, { onCleanup }) => {
    const pool = new Pool(gateway.origin, { connections: 8 })
    onCleanup(() => pool.close())
    return pool
  })
  .extend("answerTo", ({ pool }) => async ({ path, spec }: Operation, call: Call) => {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => call.params[name] ?? "")
    const prefix = spec.servers === undefined ? "/v1" : ""
    const { body, headers, statusCode } = await pool.request({
      path: `${prefix}${filled}${call.query === "" ? "" : `?${call.query}`}`,
      method: call.method,
      headers: call.headers.flat(),
      body: call.body
    })
    return { status: statusCode, type: String(headers["content-type"] ?? ""), text: await body.text() }
  })

/** Nobody can write an ID token down that is valid for ever; what is watched asks for a WebSocket; and accounts need their provider. */
const others = new Set([
  "login",
  "watchBin",
  "connectTunnel",
  "showDestinationConsent",
  "endDestinationConsent",
  "endProviderAccountConsent",
  "connectProviderAccount"
])

/** What the router, and nobody else, answers of any path. */
const routing = new Set(["ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"])

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** What is wrong with an answer; null when nothing is. */
const answerFault = (
  document: Document,
  operation: Operation,
  { status, text, type }: Answer,
  secrets: ReadonlyArray<string>
): string | null => {
  // The provider of the example is not there.
  if (status >= 500 && !(operation.id === "connectProviderAccount" && status === 502)) return "a fault of the gateway"
  if (secrets.some((secret) => text.includes(secret))) return "it repeats a secret"
  const stated = operation.spec.responses[status]
  // A browser gets a page with words.
  if (/^(?:show|end)DestinationConsent$/.test(operation.id) && type.startsWith("text/html") && status < 500) return null
  if (!type.startsWith("application/json")) {
    return stated !== undefined && stated.content?.["application/json"] === undefined ? null : `no JSON but ${type}`
  }
  const body: Body = JSON.parse(text)
  if (status >= 400) {
    const { code, error, message } = body
    const shaped = [code, error, message].every((member) => typeof member === "string") && body.status === status
    if (!shaped) return "no error of the contract"
    if (routing.has(code)) return null
  }
  return stated === undefined ? `${status} is not stated` : document.bodyFault(operation, body, status)
}

/**
 * What is wrong with a body that was taken all the same: the document says what is. But for `config`, of which it tells by the type what
 * has an effect: what has none, and what an upsert leaves as it is, need not be there.
 */
const takenFault = (document: Document, operation: Operation, { body, name }: Call): string | null => {
  const inConfig = /^(?:without )?config\b/.test(name)
  if (body === null || body.length === 0 || operation.path.startsWith("/e/") || inConfig) return null
  return document.bodyFault(operation, JSON.parse(new TextDecoder().decode(body)))
}

// oxlint-disable-next-line typescript/no-explicit-any -- a document is read as it is
const declared: any = OpenApi.fromApi(Api)
const ids = Object.values<Body>(declared.paths)
  .flatMap((item) => Object.values<Body>(item))
  .flatMap(({ operationId }) => (operationId === undefined ? [] : [operationId as string]))
/**
 * What an address may do a few times only comes before that is used up: signing in, and making bins. Secrets come last, because they end
 * the key that all others are set up with.
 */
const order = [/^login/, /^(?:get|claim)PublicBin$/, /PublicBin$/, /^(?!.*ProjectSecrets$)/, /^/]
const placeOf = (id: string): number => order.findIndex((pattern) => pattern.test(id))
const ordered = ids.toSorted((a, b) => placeOf(a) - placeOf(b))

describe("Mutated calls of every operation", { shuffle: false }, () => {
  let operations = 0
  let sent = 0

  for (const id of ordered) {
    it(`Mutated calls of ${id} are answered as the contract states`, async ({
      answerTo,
      document,
      gateway,
      person,
      presentFor
    }) => {
      const operation = document.operation(id)
      const { method, spec } = operation
      const { [callerKey]: caller, ...present } = await presentFor(operation)
      const token = caller ?? (await person(spec))
      const stated = spec.requestBody?.content["application/json"]
      const body = stated === undefined ? undefined : withSecrets(fill(stated.example, present))
      if (typeof body?.name === "string") body.name = gateway.name(body.name)
      const right: Call = {
        name: "as it is stated",
        method,
        params: Object.fromEntries(
          spec.parameters
            .filter((parameter: Body) => parameter.in === "path")
            .map(({ example, name }: Body) => [name, fill(example, present)])
        ),
        query: exampleQuery(spec, present),
        headers: [
          ...Object.entries(exampleHeaders(spec, present)),
          ...(spec.security?.length > 0 ? [["authorization", `Bearer ${token}`] as const] : []),
          ...(body === undefined ? [] : [["content-type", "application/json"] as const])
        ],
        body: body === undefined ? null : new TextEncoder().encode(JSON.stringify(body))
      }
      const secrets = [planted, token, gateway.key]
      const changed = mutations(
        operation,
        { body, call: right, ids: present, schemas: document.json.components.schemas },
        draw
      )
      const faults: Array<string> = []
      const judge = async (call: Call): Promise<void> => {
        sent++
        const answer = await answerTo(operation, call)
        const taken = answer.status < 300
        const fault =
          answerFault(document, operation, answer, secrets) ??
          (call === right && !taken && !others.has(id) ? "it is refused" : null) ??
          (taken && stated !== undefined ? takenFault(document, operation, call) : null)
        if (fault !== null) faults.push(`${call.name}: ${fault}: ${answer.status} ${answer.text.slice(0, 300)}`)
      }
      await judge(right)
      const queue = [...changed]
      const worker = async (): Promise<void> => {
        for (let call = queue.shift(); call !== undefined; call = queue.shift()) await judge(call)
      }
      await Promise.all(Array.from({ length: 8 }, worker))
      operations++
      expect(faults).toEqual([])
    })
  }

  it("Mutated calls are sent for every operation", ({ document }) => {
    expect(ids.toSorted()).toEqual(document.operations.map(({ id }) => id).toSorted())
    expect(operations).toBe(ids.length)
    expect(operations).toBeGreaterThanOrEqual(107)
    expect(sent).toBeGreaterThanOrEqual(7_000)
  })
})
