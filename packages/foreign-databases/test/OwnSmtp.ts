import { Effect, type Scope } from "effect"
import type { AddressInfo, Socket } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { fixture } from "../../egress/test/targets.ts"
import { auth } from "./Brokering.ts"

/** A letter as a server has got it. */
export interface Arrived {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly content: string
  readonly isSecure: boolean
  /** The number of the connection. */
  readonly connection: number
}

/** A mail server: the package `smtp-server`, with the certificate of `target.test`. */
export interface OwnSmtp {
  readonly port: number
  readonly letters: ReadonlyArray<Arrived>
  readonly connections: () => number
  /** How the next letters are answered: a code of refusal; `cut`: the connection is cut when the letter is there. Then they are taken. */
  readonly answers: Array<number | "cut">
  /** Recipients that are refused, with the code. */
  readonly refused: Map<string, number>
  /** Cuts all connections, and listens no more. */
  readonly kill: Effect.Effect<void>
  /** At the same port. */
  readonly start: Effect.Effect<void>
}

const refusal = (code: number): Error => Object.assign(new Error(`no, not ${auth.password}`), { responseCode: code })

export const ownSmtp = (options: SMTPServerOptions = {}): Effect.Effect<OwnSmtp, never, Scope.Scope> =>
  Effect.gen(function* () {
    const letters: Array<Arrived> = []
    const answers: Array<number | "cut"> = []
    const refused = new Map<string, number>()
    const sockets = new Set<Socket>()
    const numbers = new Map<string, number>()

    const make = (): SMTPServer => {
      const server = new SMTPServer({
        key: fixture("key.pem"),
        cert: fixture("valid.pem"),
        onConnect: ({ id }, done) => {
          numbers.set(id, numbers.size + 1)
          done()
        },
        onAuth: ({ password, username }, _, done) =>
          username === auth.username && password === auth.password
            ? done(null, { user: username })
            : done(refusal(535)),
        onRcptTo: ({ address }, _, done) => {
          const code = refused.get(address)
          done(code === undefined ? null : refusal(code))
        },
        onData: (stream, { envelope, id, secure }, done) => {
          const parts: Array<Buffer> = []
          stream.on("data", (part: Buffer) => parts.push(part))
          stream.on("end", () => {
            const answer = answers.shift()
            if (typeof answer === "number") return done(refusal(answer))
            letters.push({
              from: envelope.mailFrom === false ? "" : envelope.mailFrom.address,
              to: envelope.rcptTo.map(({ address }) => address),
              content: Buffer.concat(parts).toString(),
              isSecure: secure,
              connection: numbers.get(id) ?? 0
            })
            if (answer === undefined) return done(null, "queued as 1")
            for (const socket of sockets) socket.destroy()
          })
        },
        ...options
      })
      // A client that has hung up is no failure of the server.
      server.on("error", () => undefined)
      server.server.on("connection", (socket: Socket) => {
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket))
      })
      return server
    }

    let server = make()
    const listen = (port: number) =>
      Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void)))
    const kill = Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      for (const socket of sockets) socket.destroy()
    })
    yield* Effect.acquireRelease(listen(0), () => kill)
    const { port } = server.server.address() as AddressInfo
    return {
      port,
      letters,
      answers,
      refused,
      connections: () => numbers.size,
      kill,
      start: Effect.suspend(() => {
        server = make()
        return listen(port)
      })
    }
  })
