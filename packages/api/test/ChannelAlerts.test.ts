import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { call, layer as server, teams } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"

const settings = "/sources/channel-settings"
const url = "https://chat.example.com/hooks/a-secret-of-the-chat"

const codeOf = ({ body, status }: { readonly status: number; readonly body: { readonly code?: string } }) => [
  status,
  body.code
]

layer(server, { excludeTestServices: true })("Alert settings", (it) => {
  it.effect("Settings are the defaults until they are changed, and members that are left out stay", () =>
    Effect.gen(function* () {
      const defaults = {
        email_enabled: true,
        email_recipients: [],
        chat_enabled: false,
        chat_configured: false,
        chat_last_error: null,
        cooldown_minutes: 60,
        silence_alert_hours: 24,
        silence_alert_enabled: true,
        updated_at: null
      }
      expect((yield* call("GET", settings)).body).toEqual(defaults)
      const changed = yield* call("PATCH", settings, {
        body: { email_recipients: ["ada@example.com"], cooldown_minutes: 5, silence_alert_hours: 720 }
      })
      expect(changed.body).toEqual({
        ...defaults,
        email_recipients: ["ada@example.com"],
        cooldown_minutes: 5,
        silence_alert_hours: 720,
        updated_at: expect.any(String)
      })
      // What was read may be sent back.
      const again = yield* call("PUT", settings, { body: { ...changed.body, silence_alert_enabled: false } })
      expect(again.body).toMatchObject({ email_recipients: ["ada@example.com"], silence_alert_enabled: false })
      expect((yield* call("GET", settings)).body).toEqual(again.body)
      expect((yield* call("GET", settings, { key: teams.b.key })).body).toEqual(defaults)
    })
  )

  it.effect("The chat's URL is stored encrypted, never returned, and needed to switch the chat on", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const patch = (body: object) => call("PATCH", settings, { body })
      expect(codeOf(yield* patch({ chat_enabled: true }))).toEqual([400, "CHANNEL_SETTINGS_INVALID"])
      const set = yield* patch({ chat_enabled: true, chat_webhook_url: url })
      expect(set.body).toMatchObject({ chat_enabled: true, chat_configured: true })
      const [stored] = yield* sql`select chat_webhook_url from channel_settings where team_id = ${teams.a.id}`
      expect(stored!["chat_webhook_url"]).toMatch(/^v1\./)
      // The stored one is used again, and the error of an earlier one is forgotten with it.
      yield* sql`update channel_settings set chat_last_error = 'HTTP 404' where team_id = ${teams.a.id}`
      expect((yield* patch({ chat_enabled: false })).body.chat_last_error).toBe("HTTP 404")
      expect((yield* patch({ chat_enabled: true })).body.chat_configured).toBe(true)
      expect(codeOf(yield* patch({ chat_webhook_url: "" }))).toEqual([400, "CHANNEL_SETTINGS_INVALID"])
      const cleared = yield* patch({ chat_webhook_url: "", chat_enabled: false })
      expect(cleared.body).toMatchObject({ chat_enabled: false, chat_configured: false, chat_last_error: null })
      for (const answer of [set, cleared, yield* call("GET", settings)]) {
        expect(JSON.stringify(answer.body)).not.toContain("a-secret-of-the-chat")
      }
    })
  )

  it.effect("Invalid settings are refused, and name every member that is wrong", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<object> = [
        { cooldown_minutes: 4 },
        { cooldown_minutes: 10_081 },
        { cooldown_minutes: 5.5 },
        { silence_alert_hours: 0 },
        { silence_alert_hours: 721 },
        { email_enabled: "yes" },
        { email_recipients: Array.from({ length: 11 }, (_, n) => `a${n}@example.com`) },
        ...[
          "ada",
          "ada@example",
          "a@example.com, b@example.com",
          "Ada <a@example.com>",
          "a@example.com\r\nBcc: b@example.com"
        ].map((address) => ({ email_recipients: [address] })),
        ...[
          "http://chat.example.com/a-secret",
          "https://u:a-secret@chat.example.com",
          "a-secret",
          "javascript:a-secret"
        ].map((chat_webhook_url) => ({ chat_webhook_url }))
      ]
      for (const body of wrong) {
        const answer = yield* call("PATCH", settings, { body })
        expect([...codeOf(answer), answer.body.data.fields.length], JSON.stringify(body)).toEqual([
          400,
          "CHANNEL_SETTINGS_INVALID",
          1
        ])
        expect(JSON.stringify(answer.body)).not.toContain("a-secret")
      }
      const two = yield* call("PATCH", settings, { body: { cooldown_minutes: 1, silence_alert_hours: 0 } })
      expect(two.body.data.fields.map(({ path }: { readonly path: string }) => path).toSorted()).toEqual([
        "cooldown_minutes",
        "silence_alert_hours"
      ])
    })
  )
})

layer(server, { excludeTestServices: true })("Alerts of channels", (it) => {
  it.effect("Alerts are listed with their sources, active ones by default", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const made = yield* call("POST", "/sources", { body: { name: "alerting" } })
      const source = made.body.id as string
      yield* sql`update sources set config = ${JSON.stringify({
        ...made.body.config,
        provider: { provider_key: "google_calendar", definition_key: "event.changed" }
      })}::json where id = ${source}`
      const alert = (n: number, status: string) =>
        Effect.gen(function* () {
          const id = newId(prefixes.channelAlert, n)
          const at = new Date(1_767_225_600_000 + n)
          yield* sql`
            insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, resolved_at)
            values (${id}, ${teams.a.id}, ${source}, ${n % 2 === 0 ? "channel_stop_failed" : "channel_renewal_failed"}, ${status},
              'it failed', ${n}, ${at}, ${at}, ${status === "active" ? null : at})`
          return id
        })
      const [first, second] = [yield* alert(1, "active"), yield* alert(2, "active")]
      const old = yield* alert(3, "resolved")
      const list = (query: string) =>
        Effect.map(call("GET", `/sources/channel-alerts${query}`), ({ body }) =>
          body.models.map(({ id }: { id: string }) => id)
        )
      expect(yield* list("")).toEqual([second, first])
      expect(yield* list("?status=resolved")).toEqual([old])
      expect(yield* list("?status=all")).toEqual([old, second, first])
      const [shown] = (yield* call("GET", "/sources/channel-alerts?limit=1")).body.models
      expect(shown).toEqual({
        id: second,
        source_id: source,
        source_name: "alerting",
        provider_key: "google_calendar",
        definition_key: "event.changed",
        code: "channel_stop_failed",
        status: "active",
        message: "it failed",
        occurrences: 2,
        first_seen_at: "2026-01-01T00:00:00.002Z",
        last_seen_at: "2026-01-01T00:00:00.002Z",
        acknowledged_at: null,
        acknowledged_by: null,
        resolved_at: null
      })
      expect((yield* call("GET", "/sources/channel-alerts?status=open")).status).toBe(400)
      expect(
        yield* Effect.map(call("GET", "/sources/channel-alerts", { key: teams.b.key }), ({ body }) => body.models)
      ).toEqual([])
    })
  )

  it.effect("An alert is acknowledged once, by its own team, and not after it is resolved", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = (yield* call("POST", "/sources", { body: { name: "acknowledged" } })).body.id as string
      const raise = Effect.fnUntraced(function* (code: string, status: string) {
        const id = newId(prefixes.channelAlert, Date.now())
        yield* sql`
          insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, notify_at)
          values (${id}, ${teams.a.id}, ${source}, ${code}, ${status}, 'it failed', 1, now(), now(), now())`
        return { id, path: `/sources/channel-alerts/${id}/acknowledge` }
      })
      const open = yield* raise("channel_stop_failed", "active")
      expect(codeOf(yield* call("POST", open.path, { key: teams.b.key }))).toEqual([404, "NOT_FOUND"])
      const { token, user } = yield* somebody
      const answer = yield* call("POST", open.path, { key: token })
      expect(answer.body).toMatchObject({
        id: open.id,
        source_name: "acknowledged",
        status: "active",
        acknowledged_at: expect.any(String),
        acknowledged_by: user
      })
      expect(yield* sql`select notify_at from channel_alerts where id = ${open.id}`).toEqual([{ notify_at: null }])
      // The first one who said so stays.
      expect((yield* call("POST", open.path)).body).toEqual(answer.body)
      const over = yield* raise("channel_renewal_failed", "resolved")
      expect((yield* call("POST", over.path)).body).toMatchObject({ status: "resolved", acknowledged_at: null })
    })
  )
})
