import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import PostalMime from "postal-mime"
import type { SMTPServerOptions } from "smtp-server"
import type { Config } from "@tidegate/connectors/Settings"
import { smtp } from "../../connectors/src/Smtp.ts"
import { auth, brokers, brokerSession } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { type OwnSmtp, ownSmtp } from "./OwnSmtp.ts"

/** Against a mail server that others wrote: the package `smtp-server`. */

const session = ({ port }: OwnSmtp, change: Config = {}, as: Readonly<Record<string, string>> = auth) =>
  brokerSession(
    smtp,
    {
      host: "target.test",
      port,
      from: "orders@example.com",
      to: "ops@example.com",
      text_template: "{{payload.text}}",
      // A busy machine must not be taken for a server that does not answer.
      connect_timeout: 30,
      ...change
    },
    as
  )

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const lasting = { ...refused, final: true }
const notIn = { ...refused, code: "AUTH_REJECTED" }
const cut = { code: "SOCKET_CLOSED", final: false, broken: true }

const ways: ReadonlyArray<readonly [string, SMTPServerOptions, Config, boolean]> = [
  ["by STARTTLS", {}, {}, true],
  ["over TLS from the beginning", { secure: true }, { tls_first: true }, true],
  ["in the clear", { allowInsecureAuth: true, disabledCommands: ["STARTTLS"] }, { tls_mode: "disable" }, false],
  ["by AUTH LOGIN", { authMethods: ["LOGIN"] }, {}, true]
]

describe("Letter over a mail server", () => {
  it.live.each(ways)("Letter arrives whole and once %s", ([, options, config, isSecure]) =>
    Effect.gen(function* () {
      const server = yield* ownSmtp(options)
      const to = yield* session(server, { ...config, cc: ["c@example.com"], bcc: "b@example.com" })
      const text = `.\r\n..\r\n.QUIT ${"ж".repeat(100_000)}`
      const { answer, failure } = yield* sent(to, JSON.stringify({ text }), "evt_one")
      expect(failure).toBeNull()
      expect(answer?.body.toString()).toBe('{"reply":"250 queued as 1"}')
      expect(server.letters).toMatchObject([
        { from: "orders@example.com", to: ["ops@example.com", "c@example.com", "b@example.com"], isSecure }
      ])
      const read = yield* Effect.promise(() => PostalMime.parse(server.letters[0]!.content))
      expect([read.text?.trim(), read.messageId]).toEqual([text, "<evt_one@example.com>"])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server with another certificate gets neither the password nor a letter", () =>
    Effect.gen(function* () {
      let asked = 0
      const count: SMTPServerOptions["onAuth"] = (_, __, done) => {
        asked++
        done(null, { user: "anybody" })
      }
      for (const secure of [false, true]) {
        const server = yield* ownSmtp({ secure, onAuth: count })
        const to = yield* session(server, { host: "other.example", tls_first: secure })
        expect(told(yield* sent(to))).toEqual({ ...cut, code: "ERR_TLS_CERT_ALTNAME_INVALID" })
        expect(server.letters).toEqual([])
      }
      const plain = yield* ownSmtp({ allowInsecureAuth: true, disabledCommands: ["STARTTLS"], onAuth: count })
      expect(told(yield* sent(yield* session(plain)))).toEqual({ ...cut, code: "ERR_SSL_WRONG_VERSION_NUMBER" })
      expect(asked).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Wrong password, missing sign-in and an unknown way to sign in are reported as rejected credentials", () =>
    Effect.gen(function* () {
      const server = yield* ownSmtp()
      const wrong = yield* sent(yield* session(server, {}, { ...auth, password: "wr0ng" }))
      expect(told(wrong)).toEqual(notIn)
      expect(wrong.failure?.message).toContain("(AUTH 535)")
      expect(wrong.failure?.message).not.toContain("wr0ng")
      const nobody = yield* sent(yield* session(server, {}, {}))
      expect(told(nobody)).toEqual(notIn)
      expect(nobody.failure?.message).toContain("(MAIL 530)")
      const other = yield* ownSmtp({ authMethods: ["XOAUTH2"] })
      expect(told(yield* sent(yield* session(other)))).toEqual(notIn)
      const open = yield* ownSmtp({ authOptional: true })
      expect(told(yield* sent(yield* session(open, {}, {})))).toBe(200)
      expect(server.letters.length + other.letters.length).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Letter goes to all of its recipients or to none, and the next one goes over the same connection", () =>
    Effect.gen(function* () {
      const server = yield* ownSmtp()
      server.refused.set("gone@example.com", 550).set("full@example.com", 452)
      const to = yield* session(server, { to: ["ops@example.com", "{{payload.to}}"] })
      const gone = yield* sent(to, '{"to":"gone@example.com"}')
      expect(told(gone)).toEqual(lasting)
      expect(gone.failure?.message).toContain("the server takes no letter to a recipient (RCPT 550)")
      expect(told(yield* sent(to, '{"to":"full@example.com"}'))).toEqual(refused)
      expect(server.letters).toEqual([])
      expect(told(yield* sent(to, '{"to":"new@example.com"}'))).toBe(200)
      expect(server.letters).toMatchObject([{ to: ["ops@example.com", "new@example.com"], connection: 1 }])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Letter is refused for ever by 5xx and for now by 4xx, with the server's words but no password", () =>
    Effect.gen(function* () {
      const server = yield* ownSmtp()
      server.answers.push(451, 554)
      const to = yield* session(server)
      const now = yield* sent(to)
      expect(told(now)).toEqual(refused)
      expect(now.failure?.message).toBe("the server does not take the letter now (DATA 451): no, not ****")
      expect(told(yield* sent(to))).toEqual(lasting)
      expect(told(yield* sent(to))).toBe(200)
      expect(server.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Letter that is larger than the server takes is refused before it is sent", () =>
    Effect.gen(function* () {
      const server = yield* ownSmtp({ size: 10_000 })
      const to = yield* session(server)
      expect(told(yield* sent(to, JSON.stringify({ text: "a".repeat(10_000) })))).toEqual(lasting)
      expect(told(yield* sent(to))).toBe(200)
      expect(server.letters).toHaveLength(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Address with letters beyond ASCII is sent to a server that takes it, and to no other", () =>
    Effect.gen(function* () {
      const address = "δοκιμή@example.com"
      const server = yield* ownSmtp()
      expect(told(yield* sent(yield* session(server, { to: address })))).toBe(200)
      expect(server.letters).toMatchObject([{ to: [address] }])
      const ascii = yield* ownSmtp({ hideSMTPUTF8: true })
      const to = yield* session(ascii, { to: ["{{payload.to}}"] })
      expect(told(yield* sent(to, JSON.stringify({ to: address })))).toEqual(lasting)
      expect(told(yield* sent(to, '{"to":"ops@example.com"}'))).toBe(200)
      expect(ascii.letters).toHaveLength(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live(
    "Server that is cut off after it got the letter may have it, and gets it again with the same Message-ID",
    () =>
      Effect.gen(function* () {
        const server = yield* ownSmtp()
        server.answers.push("cut")
        const to = yield* session(server)
        const { failure } = yield* sent(to, "{}", "evt_twice")
        expect(failure).toMatchObject(cut)
        expect(failure?.message).toContain("it may have taken it")
        expect(told(yield* sent(to, "{}", "evt_twice"))).toBe(200)
        const ids = server.letters.map(({ content }) => /^Message-ID: (.*)\r$/m.exec(content)?.[1])
        expect(ids).toEqual(["<evt_twice@example.com>", "<evt_twice@example.com>"])
      }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server that was killed is used again when it is back", () =>
    Effect.gen(function* () {
      const server = yield* ownSmtp()
      const to = yield* session(server)
      expect(told(yield* sent(to))).toBe(200)
      yield* server.kill
      const away = yield* sent(to)
      expect(away.failure).toMatchObject({ final: false })
      expect(away.failure?.message).not.toContain("it may have taken it")
      yield* server.start
      expect(told(yield* sent(to))).toBe(200)
      expect(server.letters).toHaveLength(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
