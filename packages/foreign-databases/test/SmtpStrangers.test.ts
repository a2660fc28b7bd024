import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Socket } from "node:net"
import type { Config } from "@tidegate/connectors/Settings"
import { smtp } from "../../connectors/src/Smtp.ts"
import type { Target } from "../../egress/test/targets.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"

/** Servers that are no mail servers, or worse: each costs one attempt, and little memory. */

type Script = Readonly<Record<string, string | ((socket: Socket) => void)>>

/** What a mail server says to each command; `.` is the end of a letter. */
const usual: Script = {
  greeting: "220 here\r\n",
  EHLO: "250-here\r\n250-AUTH LOGIN PLAIN\r\n250 HELP\r\n",
  AUTH: "235 in\r\n",
  MAIL: "250 ok\r\n",
  RCPT: "250 ok\r\n",
  DATA: "354 go on\r\n",
  ".": "250 queued\r\n",
  RSET: "250 ok\r\n",
  QUIT: "221 bye\r\n"
}

const server =
  (change: Script) =>
  (socket: Socket): void => {
    const script = { ...usual, ...change }
    const say = (word: string): void => {
      const said = script[word]
      if (typeof said === "string") socket.write(said)
      else said?.(socket)
    }
    let rest = ""
    let isLetter = false
    socket.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("latin1")).split("\r\n")
      rest = lines.pop()!
      for (const line of lines) {
        if (isLetter && line !== ".") continue
        const word = line.split(" ", 1)[0]!
        isLetter = word === "DATA"
        say(word)
      }
    })
    say("greeting")
  }

const hangUp = (socket: Socket): void => void socket.end()
const silent = (): void => undefined

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const closed = { ...protocol, code: "SOCKET_CLOSED" }
const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const lasting = { ...refused, final: true }
const notIn = { ...refused, code: "AUTH_REJECTED" }
const noTls = { ...protocol, code: "ERR_SSL_WRONG_VERSION_NUMBER" }

const strangers: ReadonlyArray<readonly [name: string, script: Script, as: object | number, config?: Config]> = [
  ["that is one", {}, 200],
  [
    "that says everything byte by byte",
    {
      EHLO: (socket) => {
        for (const byte of Buffer.from(String(usual["EHLO"]))) socket.write(Buffer.of(byte))
      }
    },
    200
  ],
  ["that says nothing beside its codes", { MAIL: "250\r\n", ".": "250\r\n" }, 200],
  ["that names itself in many lines", { greeting: `${"220-here\r\n".repeat(50)}220 here\r\n` }, 200],
  ["that has a limit that is no number", { EHLO: "250-here\r\n250-AUTH PLAIN\r\n250 SIZE many\r\n" }, 200],
  ["that says nothing", { greeting: silent }, { ...protocol, code: "TIMEOUT" }, { connect_timeout: 1 }],
  ["that hangs up at once", { greeting: hangUp }, closed],
  ["that hangs up at the letter", { DATA: hangUp }, closed],
  ["that speaks HTTP", { greeting: "HTTP/1.1 400 Bad Request\r\n\r\n" }, protocol],
  ["that ends its lines as it likes", { greeting: "220 here\n" }, protocol],
  ["whose greeting never ends", { greeting: (socket) => forEver(socket, Buffer.from("2")) }, tooLarge],
  ["whose reply never ends", { EHLO: (socket) => forEver(socket, Buffer.from("250-a\r\n")) }, tooLarge],
  ["whose last reply never ends", { ".": (socket) => forEver(socket, Buffer.from("250-a\r\n")) }, tooLarge],
  ["that floods replies", { MAIL: (socket) => forEver(socket, Buffer.from("250 a\r\n")) }, protocol],
  ["whose reply has two codes", { EHLO: "250-here\r\n220 here\r\n" }, protocol],
  ["that takes the command for the letter", { DATA: "250 ok\r\n" }, protocol],
  ["that goes on where nothing does", { MAIL: "354 ok\r\n" }, protocol],
  ["that takes no connections", { greeting: "554 no\r\n" }, refused],
  ["that has too many clients", { greeting: "421 later\r\n" }, refused],
  ["that does not know EHLO", { EHLO: "502 what\r\n" }, refused],
  ["that knows no way to sign in", { EHLO: "250 here\r\n" }, notIn],
  ["that cannot look up passwords", { AUTH: "454 later\r\n" }, refused],
  ["that refuses the password", { AUTH: "535 no\r\n" }, notIn],
  ["that refuses the sender for ever", { MAIL: "550 no\r\n" }, lasting],
  ["that wants a sign-in for the recipient", { RCPT: "530 no\r\n" }, notIn],
  ["that puts the recipient off", { RCPT: "450 later\r\n" }, refused],
  ["that has too many recipients", { RCPT: "552 too many\r\n" }, refused],
  ["that refuses the recipient for ever", { RCPT: "553 no\r\n" }, lasting],
  ["that shuts down before the letter", { DATA: "421 bye\r\n" }, refused],
  ["that shuts down after the letter", { ".": "421 bye\r\n" }, refused],
  ["that refuses the letter for ever", { ".": "554 spam\r\n" }, lasting],
  ["that says nothing about TLS", {}, noTls, { tls_mode: "verify-full" }],
  [
    "that takes back that it speaks TLS",
    { EHLO: "250-here\r\n250 STARTTLS\r\n", STARTTLS: "454 no\r\n" },
    { ...noTls, broken: false },
    { tls_mode: "verify-full" }
  ],
  [
    "that speaks before TLS",
    { EHLO: "250-here\r\n250 STARTTLS\r\n", STARTTLS: "220 go\r\n250 AUTH PLAIN\r\n" },
    protocol,
    { tls_mode: "verify-full" }
  ]
]

const configOf = ({ port }: Target, change: Config = {}): Config => ({
  host: "target.test",
  port,
  from: "orders@example.com",
  to: "ops@example.com",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer.
  connect_timeout: 30,
  ...change
})

describe("Mail server that is not trusted", () => {
  it.live.each(strangers)("Letter to a server %s has the expected result", ([, script, as, change]) =>
    Effect.gen(function* () {
      const session = yield* brokerSession(smtp, configOf(yield* listening(server(script)), change))
      const ended = yield* sent(session)
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server's words are shown on one line, without the password in any form", () =>
    Effect.gen(function* () {
      const forms = [auth.password, `\0${auth.username}\0${auth.password}`]
      const said = forms.map((form) => Buffer.from(form).toString("base64")).join(" ")
      const target = yield* listening(server({ AUTH: `535-no\u0007 ${auth.password}\r\n535 ${said}\r\n` }))
      const { failure } = yield* sent(yield* brokerSession(smtp, configOf(target)))
      expect(failure?.message).toBe("the server does not let the destination in (AUTH 535): no  **** **** ****")
      const kind = yield* listening(server({ ".": `250 ok ${auth.password}\r\n` }))
      const { answer } = yield* sent(yield* brokerSession(smtp, configOf(kind)))
      expect(answer?.body.toString()).toBe('{"reply":"250 ok ****"}')
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Mail server at a private address is not connected to", () =>
    Effect.gen(function* () {
      const target = yield* listening(server({}))
      for (const host of ["target.test", "127.0.0.1", "::1"]) {
        const ended = yield* sent(yield* brokerSession(smtp, configOf(target, { host })))
        expect(told(ended)).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers([])))
  )

  it.live("Interrupted letter takes its connection with it, and the next one is sent over a new one", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      let count = 0
      const target = yield* listening(
        server({
          ".": (socket) => {
            if (++count === 1) Deferred.doneUnsafe(arrived, Effect.void)
            else socket.write("250 second\r\n")
          }
        })
      )
      const session = yield* brokerSession(smtp, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sending)
      const { answer } = yield* sent(session)
      expect(answer?.body.toString()).toBe('{"reply":"250 second"}')
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Letters at once are sent one after the other over one connection", () =>
    Effect.gen(function* () {
      const target = yield* listening(server({}))
      const session = yield* brokerSession(smtp, configOf(target))
      const ends = yield* Effect.all(
        ["evt_1", "evt_2", "evt_3"].map((id) => sent(session, "{}", id)),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual([200, 200, 200])
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
