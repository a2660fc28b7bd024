import { expect, layer } from "@effect/vitest"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import PostalMime from "postal-mime"
import { SMTPServer } from "smtp-server"
import { Egress } from "@tidegate/egress/Egress"
import { newId, prefixes } from "@tidegate/model/Ids"
import { claimMessages } from "@tidegate/storage/channels/AlertDelivery"
import { acknowledgeAlert } from "@tidegate/storage/channels/Alerts"
import { sealedColumn } from "../../storage/src/secrets/SealedColumn.ts"
import { Secrets } from "../../storage/src/secrets/Secrets.ts"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { deliverAlerts } from "../src/Alerts/AlertDelivery.ts"
import { MailServer } from "../src/Alerts/MailServer.ts"
import { sendAlert } from "../src/Alerts/SendAlert.ts"

const minute = 60_000

interface Letter {
  readonly to: ReadonlyArray<string>
  readonly messageId: string
  readonly references: string
  readonly listId: string
  readonly subject: string
  readonly text: string
}

/** A mail server and a chat, what they have got, and how they answer. */
class Outside extends Context.Service<
  Outside,
  {
    readonly smtp: number
    readonly chat: string
    readonly letters: Array<Letter>
    readonly posts: Array<string>
    /** The replies to the next letters: null takes one. */
    readonly mailAnswers: Array<number | null>
    readonly chatAnswers: Array<{ readonly status: number; readonly retryAfter?: string }>
  }
>()("Outside") {
  static readonly layer = Layer.effect(
    Outside,
    Effect.gen(function* () {
      const letters: Array<Letter> = []
      const posts: Array<string> = []
      const mailAnswers: Array<number | null> = []
      const chatAnswers: Array<{ readonly status: number; readonly retryAfter?: string }> = []
      const smtp = new SMTPServer({
        authOptional: true,
        disabledCommands: ["STARTTLS", "AUTH"],
        onData: (stream, session, done) => {
          const parts: Array<Buffer> = []
          stream.on("data", (part: Buffer) => parts.push(part))
          stream.on("end", () => {
            const code = mailAnswers.shift() ?? null
            if (code !== null) return done(Object.assign(new Error("not now"), { responseCode: code }))
            const taken = async (): Promise<void> => {
              const mail = await PostalMime.parse(Buffer.concat(parts))
              const header = (name: string) => mail.headers.find(({ key }) => key === name)?.value ?? ""
              letters.push({
                to: session.envelope.rcptTo.map(({ address }) => address),
                messageId: mail.messageId ?? "",
                references: mail.references ?? "",
                listId: header("list-id"),
                subject: mail.subject ?? "",
                text: mail.text ?? ""
              })
              done()
            }
            void taken()
          })
        }
      })
      const chat = createServer((request, response) => {
        let body = ""
        request.on("data", (part: Buffer) => (body += part.toString()))
        request.on("end", () => {
          posts.push(body)
          const { retryAfter, status } = chatAnswers.shift() ?? { status: 200 }
          response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end("ok")
        })
      })
      const listening = (server: { readonly listen: (port: number, host: string, done: () => void) => unknown }) =>
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
      yield* Effect.acquireRelease(listening(smtp), () =>
        Effect.callback<void>((resume) => smtp.close(() => resume(Effect.void)))
      )
      yield* Effect.acquireRelease(listening(chat), () =>
        Effect.callback<void>((resume) => {
          chat.closeAllConnections()
          chat.close(() => resume(Effect.void))
        })
      )
      const portOf = (server: { readonly address: () => unknown }) => (server.address() as AddressInfo).port
      return Outside.of({
        smtp: portOf(smtp.server),
        chat: `http://127.0.0.1:${portOf(chat)}/hooks/a-secret`,
        letters,
        posts,
        mailAnswers,
        chatAnswers
      })
    })
  )
}

const mail = Layer.unwrap(
  Effect.map(Outside, ({ smtp }) =>
    MailServer.layer({ url: Redacted.make(`smtp://127.0.0.1:${smtp}`), from: "alerts@gateway.example.com" })
  )
)

const world = Layer.mergeAll(
  ControlPlane.layer,
  Layer.provideMerge(mail, Outside.layer),
  Egress.layer({ allow: ["127.0.0.0/8"] })
).pipe(Layer.orDie)

type World = Layer.Success<typeof world>

/** A new team with its settings. */
const newTeam = Effect.fnUntraced(function* (
  fields: {
    readonly email?: boolean
    readonly recipients?: ReadonlyArray<string>
    readonly chat?: boolean
    readonly url?: string | null
  } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const outside = yield* Outside
  for (const list of [outside.letters, outside.posts, outside.mailAnswers, outside.chatAnswers]) list.splice(0)
  yield* sql`update channel_alerts set notify_at = null`
  yield* sql`update channel_alert_deliveries set due_at = null`
  const team = ControlPlane.unique("tm_alerted")
  yield* sql`insert into teams (id, name) values (${team}, 'Alerted')`
  const url = fields.url === undefined ? outside.chat : fields.url
  const sealed =
    url === null
      ? null
      : yield* sealedColumn(yield* Secrets, "channel_settings", "chat_webhook_url").seal(
          { team_id: team, id: team },
          { url }
        )
  yield* sql`
    insert into channel_settings (team_id, email_enabled, email_recipients, chat_enabled, chat_webhook_url, cooldown_minutes,
      silence_alert_hours, silence_alert_enabled, updated_at)
    values (${team}, ${fields.email ?? true}, ${fields.recipients ?? ["ada@example.com", "bob@example.com"]}, ${fields.chat ?? true},
      ${sealed}, 60, 24, true, now())`
  return team
})

let sources = 0

/** Opens an alert of a source of its own, or of the given one. */
const raise = Effect.fnUntraced(function* (team: string, code = "channel_renewal_failed", source?: string) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const at = new Date(now)
  const source_id = source ?? newId(prefixes.source, now)
  if (source === undefined) {
    yield* sql`
      insert into sources (id, team_id, name, type, config, created_at, updated_at)
      values (${source_id}, ${team}, ${`Calendar ${++sources}`}, 'WEBHOOK', '{}', now(), now())`
  }
  const id = newId(prefixes.channelAlert, now)
  yield* sql`
    insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, notify_at)
    values (${id}, ${team}, ${source_id}, ${code}, 'active', 'The provider answers 503', 1, ${at}, ${at}, ${at})`
  return { id, source: source_id }
})

const resolve = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update channel_alerts set status = 'resolved', resolved_at = ${at}, notify_at = ${at} where id = ${id}`
})

interface Row {
  readonly id: string
  readonly kind: string
  readonly transport: string
  readonly status: string
  readonly recipient: string
  readonly error_code: string | null
  readonly response_status: number | null
  readonly suppressed_reason: string | null
  readonly attempts: number
  readonly message_id: string | null
  readonly due_at: Date | null
}

const rowsOf = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Row>`select * from channel_alert_deliveries where team_id = ${team} order by created_at, transport desc, id`
})
const toldOf = (rows: ReadonlyArray<Row>) =>
  rows.map(({ error_code, kind, status, suppressed_reason, transport }) =>
    [transport, kind, status, suppressed_reason ?? error_code].filter((part) => part !== null).join(" ")
  )

/** What is due at the moment: decided, and after the time for grouping sent. */
const deliver = Effect.gen(function* () {
  yield* deliverAlerts
  yield* TestClock.adjust("30 seconds")
  yield* deliverAlerts
})

layer(world, { excludeTestServices: true })("Delivery of alerts", (it) => {
  // The clock is the test's own; what the database was made by had the real one.
  const test = (title: string, body: () => Effect.Effect<void, unknown, World>) =>
    it.effect(title, () =>
      Effect.andThen(TestClock.setTime(1_767_225_600_000 + 86_400_000 * ++days), Effect.suspend(body)).pipe(
        Effect.provide(TestClock.layer())
      )
    )
  let days = 0

  test("An acknowledged alert has no reminders, its end is told, and the next alert of its kind is sent", () =>
    Effect.gen(function* () {
      const team = yield* newTeam()
      const { id, source } = yield* raise(team)
      yield* deliver
      yield* acknowledgeAlert({ team_id: team, id, by: null })
      // Without it, several reminders are due by then.
      yield* TestClock.adjust("20 hours")
      yield* deliver
      expect(toldOf(yield* rowsOf(team))).toEqual(["email opened sent", "chat opened sent"])
      yield* resolve(id)
      yield* deliver
      expect(toldOf(yield* rowsOf(team)).slice(2)).toEqual(["email resolved sent", "chat resolved sent"])
      yield* TestClock.adjust("1 hour")
      yield* raise(team, "channel_renewal_failed", source)
      yield* deliver
      expect(toldOf(yield* rowsOf(team)).slice(4)).toEqual(["email opened sent", "chat opened sent"])
      yield* TestClock.adjust("1 hour")
      yield* deliver
      expect(toldOf(yield* rowsOf(team)).slice(6)).toEqual(["email reminder sent", "chat reminder sent"])
    }))

  test("An alert is sent to the mail server and to the chat, and once more when it is resolved", () =>
    Effect.gen(function* () {
      const { letters, posts } = yield* Outside
      const team = yield* newTeam()
      const { id } = yield* raise(team)
      yield* deliver
      expect(toldOf(yield* rowsOf(team))).toEqual(["email opened sent", "chat opened sent"])
      const [first] = yield* rowsOf(team)
      expect(first).toMatchObject({
        recipient: "a***@example.com, b***@example.com",
        response_status: 250,
        attempts: 1
      })
      expect(letters).toEqual([
        {
          to: ["ada@example.com", "bob@example.com"],
          messageId: `<${first!.message_id}@gateway.example.com>`,
          references: "",
          listId: `<channel-alerts.${team.replaceAll("_", "-")}.gateway.example.com>`,
          subject: expect.stringMatching(/^\[Tidegate\] Renewal failed: Calendar \d+$/),
          text: expect.stringContaining("The provider answers 503")
        }
      ])
      expect(posts.map((post) => JSON.parse(post))).toEqual([
        { text: expect.stringContaining("Renewal failed: Calendar") }
      ])
      // Nothing more within the cooldown, but that it is over.
      yield* TestClock.adjust("10 minutes")
      yield* deliver
      expect(letters.length).toBe(1)
      yield* resolve(id)
      yield* deliver
      yield* deliver
      expect(toldOf(yield* rowsOf(team)).slice(2)).toEqual(["email resolved sent", "chat resolved sent"])
      expect(letters[1]).toMatchObject({
        references: letters[0]!.messageId,
        subject: expect.stringContaining("Resolved: ")
      })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select metric, value::int4 as value from channel_metrics where team_id = ${team}`).toEqual([
        { metric: "alerts_sent", value: 4 }
      ])
    }))

  test("Alerts of one team within 30 seconds are one message, and those of another team are not in it", () =>
    Effect.gen(function* () {
      const { letters, posts } = yield* Outside
      const team = yield* newTeam()
      yield* raise(team)
      yield* raise(team, "channel_stop_failed")
      yield* deliverAlerts
      yield* TestClock.adjust("20 seconds")
      yield* raise(team)
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into teams (id, name) values (${`${team}_other`}, 'Other')`
      yield* raise(`${team}_other`)
      yield* deliverAlerts
      expect(letters).toEqual([])
      yield* TestClock.adjust("10 seconds")
      yield* deliverAlerts
      expect([letters.length, posts.length]).toEqual([1, 1])
      expect(letters[0]!.subject).toBe("[Tidegate] 3 alerts of channels")
      expect(new Set((yield* rowsOf(team)).map((row) => row.message_id)).size).toBe(2)
      // The other team has no owner who could be told.
      yield* TestClock.adjust("20 seconds")
      yield* deliverAlerts
      expect(toldOf(yield* rowsOf(`${team}_other`))).toEqual([
        "email opened failed NO_RECIPIENTS",
        "chat opened suppressed disabled"
      ])
    }))

  test("Reminders come after the cooldown and then ever more rarely", () =>
    Effect.gen(function* () {
      const { posts } = yield* Outside
      const team = yield* newTeam({ email: false })
      yield* raise(team)
      yield* deliver
      const reminders: Array<number> = []
      for (let n = 0; n < 16; n++) {
        const before = posts.length
        yield* TestClock.adjust("30 minutes")
        yield* deliver
        if (posts.length > before) reminders.push((n + 1) / 2)
      }
      expect(reminders).toEqual([1, 3, 7])
      const told = toldOf(yield* rowsOf(team))
      expect(told.filter((one) => one.startsWith("chat"))).toEqual([
        "chat opened sent",
        "chat reminder sent",
        "chat reminder sent",
        "chat reminder sent"
      ])
      expect(new Set(told.filter((one) => one.startsWith("email")))).toEqual(
        new Set(["email opened suppressed disabled"])
      )
    }))

  test("An alert that opens again within the cooldown is told of after it", () =>
    Effect.gen(function* () {
      const { letters } = yield* Outside
      const team = yield* newTeam({ chat: false })
      const { id, source } = yield* raise(team)
      yield* deliver
      yield* resolve(id)
      yield* deliver
      yield* raise(team, "channel_renewal_failed", source)
      yield* deliver
      const emails = Effect.map(rowsOf(team), (rows) => toldOf(rows.filter(({ transport }) => transport === "email")))
      expect(yield* emails).toEqual(["email opened sent", "email resolved sent", "email opened suppressed cooldown"])
      expect(letters.length).toBe(2)
      yield* TestClock.adjust("1 hour")
      yield* deliver
      expect((yield* emails).at(-1)).toBe("email opened sent")
      expect(letters.length).toBe(3)
    }))

  test("A message that was sent but not recorded is sent again with the same Message-ID", () =>
    Effect.gen(function* () {
      const { letters } = yield* Outside
      const team = yield* newTeam({ chat: false })
      yield* raise(team)
      yield* deliverAlerts
      yield* TestClock.adjust("30 seconds")
      const [claimed] = yield* claimMessages(yield* Clock.currentTimeMillis)
      // Sent, and then the process is killed.
      yield* sendAlert(claimed!)
      yield* deliver
      expect(letters.length).toBe(1)
      expect((yield* rowsOf(team)).map(({ status }) => status)).toContain("queued")
      yield* TestClock.adjust("2 minutes")
      yield* deliver
      expect(letters.map(({ messageId }) => messageId)).toEqual([letters[0]!.messageId, letters[0]!.messageId])
      expect((yield* rowsOf(team)).find(({ transport }) => transport === "email")).toMatchObject({
        status: "sent",
        attempts: 2,
        due_at: null
      })
      yield* deliver
      expect(letters.length).toBe(2)
    }))

  test("A chat that fails for a while gets the message again, and waits as long as it asks for", () =>
    Effect.gen(function* () {
      const { chatAnswers, posts } = yield* Outside
      const team = yield* newTeam({ email: false })
      chatAnswers.push({ status: 503 }, { status: 429, retryAfter: "120" }, { status: 500 }, { status: 500 })
      yield* raise(team)
      yield* deliver
      const row = Effect.map(rowsOf(team), (rows) => rows.find(({ transport }) => transport === "chat"))
      const waits = [5_000, 120_000, 10 * minute]
      for (const [n, wait] of waits.entries()) {
        expect(yield* row).toMatchObject({ status: "queued", error_code: "CHAT_UNAVAILABLE", attempts: n + 1 })
        yield* TestClock.adjust(wait - 1)
        yield* deliverAlerts
        expect(posts.length).toBe(n + 1)
        yield* TestClock.adjust(1)
        yield* deliverAlerts
        expect(posts.length).toBe(n + 2)
      }
      expect(yield* row).toMatchObject({
        status: "failed",
        error_code: "CHAT_UNAVAILABLE",
        response_status: 500,
        due_at: null
      })
    }))

  test("A chat that refuses the message for good is named in the settings until it takes one", () =>
    Effect.gen(function* () {
      const { chatAnswers } = yield* Outside
      const sql = yield* SqlClient.SqlClient
      const lastError = (team: string) =>
        Effect.map(
          sql<{
            chat_last_error: string | null
            chat_enabled: boolean
          }>`select * from channel_settings where team_id = ${team}`,
          ([row]) => [row!.chat_last_error, row!.chat_enabled]
        )
      for (const status of [400, 403, 404, 410]) {
        const team = yield* newTeam({ email: false })
        chatAnswers.push({ status })
        yield* raise(team)
        yield* deliver
        expect((yield* rowsOf(team)).find(({ transport }) => transport === "chat")).toMatchObject({
          status: "failed",
          error_code: "CHAT_REFUSED",
          response_status: status,
          attempts: 1
        })
        expect(yield* lastError(team)).toEqual([`The chat answered with HTTP ${status}`, true])
        yield* TestClock.adjust("1 hour")
        yield* deliver
        expect(yield* lastError(team)).toEqual([null, true])
      }
    }))

  test("A mail server that fails for a while gets the letter again, and one that refuses it does not", () =>
    Effect.gen(function* () {
      const { letters, mailAnswers } = yield* Outside
      const team = yield* newTeam({ chat: false })
      const row = (of: string) => Effect.map(rowsOf(of), (rows) => rows.find(({ transport }) => transport === "email"))
      mailAnswers.push(451)
      yield* raise(team)
      yield* deliver
      expect(yield* row(team)).toMatchObject({ status: "queued", error_code: "SMTP_UNAVAILABLE", response_status: 451 })
      yield* TestClock.adjust("5 seconds")
      yield* deliverAlerts
      expect(yield* row(team)).toMatchObject({ status: "sent", error_code: null })
      expect(letters.length).toBe(1)
      const refused = yield* newTeam({ chat: false })
      mailAnswers.push(550)
      yield* raise(refused)
      yield* deliver
      expect(yield* row(refused)).toMatchObject({ status: "failed", error_code: "SMTP_REFUSED", response_status: 550 })
    }))

  test("Messages that cannot be sent are recorded with the reason", () =>
    Effect.gen(function* () {
      const off = yield* newTeam({ email: false, url: null })
      yield* raise(off)
      yield* Effect.provideService(deliverAlerts, MailServer, null)
      expect(toldOf(yield* rowsOf(off))).toEqual([
        "email opened suppressed disabled",
        "chat opened suppressed not_configured"
      ])
      const on = yield* newTeam({ chat: false })
      yield* raise(on)
      yield* Effect.provideService(deliverAlerts, MailServer, null)
      expect(toldOf(yield* rowsOf(on))).toEqual([
        "email opened failed SMTP_NOT_CONFIGURED",
        "chat opened suppressed disabled"
      ])
      // The guard of the way out refuses the target.
      const inner = yield* newTeam({ email: false, url: "http://169.254.169.254/latest" })
      yield* raise(inner)
      yield* deliver
      expect(toldOf(yield* rowsOf(inner))).toEqual([
        "email opened suppressed disabled",
        "chat opened failed TARGET_NOT_ALLOWED"
      ])
    }))

  test("Owners are told when a team has set no recipients, but no unverified addresses", () =>
    Effect.gen(function* () {
      const { letters } = yield* Outside
      const sql = yield* SqlClient.SqlClient
      const team = yield* newTeam({ chat: false, recipients: [] })
      for (const [who, role, verified] of [
        ["owner", "owner", true],
        ["stranger", "owner", false],
        ["member", "member", true]
      ] as const) {
        const id = newId(prefixes.user, Date.now())
        yield* sql`
          insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
          values (${id}, 'https://issuer.test', ${id}, ${`${who}@example.com`}, ${verified}, ${who}, now(), now())`
        yield* sql`insert into memberships values (${team}, ${id}, ${role}, now())`
      }
      yield* raise(team)
      yield* deliver
      expect(letters.map(({ to }) => to)).toEqual([["owner@example.com"]])
    }))
})
