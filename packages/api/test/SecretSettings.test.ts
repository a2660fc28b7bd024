import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readDeliverySettings } from "@tidegate/storage/delivery/DeliverySettings"
import { call, layer as server } from "./ControlServer.ts"

/** A setting that is itself a secret: the URL of a channel's webhook, by which anybody may post. */

const token = "t0ken-of-the-webhook"
const url = `https://discord.com/api/webhooks/1234/${token}?thread_id=5`
const mask = "https://discord.com/api/webhooks/1234/****hook"

let made = 0
const create = Effect.gen(function* () {
  const body = { name: `channel-${++made}`, type: "CHAT_WEBHOOK", config: { url, content_template: "a" } }
  const created = yield* call("POST", "/v1/destinations", { body })
  expect([created.status, created.body.config.url, created.body.config.auth]).toEqual([200, mask, {}])
  return created.body as { readonly id: string; readonly name: string }
})

/** What it would deliver by. */
const delivering = Effect.fnUntraced(function* (id: string) {
  const settings = yield* readDeliverySettings(id, 1)
  return settings!.destination
})

layer(server, { excludeTestServices: true })("Secret setting", (it) => {
  it.effect("Secret setting is shown masked and stored encrypted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* create
      for (const path of [`/v1/destinations/${id}`, "/v1/destinations"]) {
        const text = JSON.stringify((yield* call("GET", path)).body)
        expect(text).toContain(mask)
        expect(text).not.toContain(token)
      }
      const [row] = yield* sql<{
        text: string
      }>`select row_to_json(d)::text as text from destinations d where id = ${id}`
      expect(row?.text).not.toContain("discord")
      expect(yield* delivering(id)).toMatchObject({ config: { url, content_template: "a" }, auth: {} })
    })
  )

  it.effect("Secret setting stays unchanged when its mask is written back or it is omitted", () =>
    Effect.gen(function* () {
      const { id, name } = yield* create
      const at = `/v1/destinations/${id}`
      const type = "CHAT_WEBHOOK"
      const writes = [
        ["PATCH", at, { config: { url: mask, content_template: "b" } }, "b"],
        ["PATCH", at, { config: { content_template: "c" } }, "c"],
        ["PATCH", at, { url: mask, content_template: "d" }, "d"],
        ["PUT", at, { name, type, config: { url: mask, content_template: "e" } }, "e"],
        ["PUT", "/v1/destinations", { name, type, config: { url: mask, content_template: "f" } }, "f"]
      ] as const
      for (const [method, path, body, content_template] of writes) {
        expect((yield* call(method, path, { body })).body.config).toMatchObject({ url: mask, content_template })
        expect((yield* delivering(id)).config).toMatchObject({ url, content_template })
      }
    })
  )

  it.effect("Mask of another secret setting is refused and never stored as the secret", () =>
    Effect.gen(function* () {
      const { id, name } = yield* create
      const at = `/v1/destinations/${id}`
      const fault = { path: "config.url", message: "is masked and matches no stored secret: write the secret itself" }
      const others = [
        mask.replace("1234", "1235"),
        mask.replace("hook", "hoot"),
        `${mask}?thread_id=6`,
        `${mask}/slack`
      ]
      for (const written of others) {
        const { body } = yield* call("PATCH", at, { body: { config: { url: written } } })
        expect([body.code, body.data.fields]).toEqual(["VALIDATION_ERROR", [fault]])
      }
      const fresh = { name: `${name}-2`, type: "CHAT_WEBHOOK", config: { url: mask } }
      expect((yield* call("POST", "/v1/destinations", { body: fresh })).body.data.fields).toEqual([fault])
      expect((yield* delivering(id)).config).toMatchObject({ url })
    })
  )

  it.effect("Secret setting is removed when it is replaced or the type changes", () =>
    Effect.gen(function* () {
      const { id } = yield* create
      const at = `/v1/destinations/${id}`
      const next = "https://discord.com/api/v10/webhooks/9/an0ther-token"
      const { body } = yield* call("PATCH", at, { body: { config: { url: next } } })
      expect(body.config.url).toBe("https://discord.com/api/v10/webhooks/9/****oken")
      expect((yield* delivering(id)).config).toMatchObject({ url: next })
      expect((yield* call("PATCH", at, { body: { type: "HTTP" } })).body.data.fields).toEqual([
        { path: "config.url", message: "is required: an absolute http or https URL" }
      ])
      const target = "https://target.example/hook"
      const http = yield* call("PATCH", at, { body: { type: "HTTP", config: { url: target } } })
      expect(http.body.config).toMatchObject({ url: target, auth: {} })
      expect(yield* delivering(id)).toMatchObject({ config: { url: target }, auth: {} })
    })
  )

  it.effect("Secret setting of an older row is shown masked and encrypted by the next write", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* create
      const at = `/v1/destinations/${id}`
      yield* sql`update destinations set auth = null, config = config || ${JSON.stringify({ url })}::jsonb where id = ${id}`
      expect((yield* call("GET", at)).body.config.url).toBe(mask)
      expect((yield* delivering(id)).config).toMatchObject({ url })
      expect((yield* call("PATCH", at, { body: { config: { url: mask } } })).status).toBe(200)
      const [row] = yield* sql<{
        text: string
      }>`select row_to_json(d)::text as text from destinations d where id = ${id}`
      expect(row?.text).not.toContain("discord")
      expect((yield* delivering(id)).config).toMatchObject({ url })
    })
  )
})
