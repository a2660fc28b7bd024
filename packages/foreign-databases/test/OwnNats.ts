import { Effect, type Scope } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import type { NatsServer } from "@tidegate/connectors/Brokers"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { LineCutter } from "../src/LineCutter.ts"
import { greetingIn, signInTo } from "../src/NatsFrames.ts"
import { natsKey, writtenKey } from "../src/NatsKey.ts"
import { fixture, freePort, type OwnProgram, ownProgram } from "./OwnBroker.ts"
import { authority } from "./OwnPostgres.ts"

/** The program of a real NATS server, where one is installed (`apt-get install nats-server`). */
export const program = ["/usr/sbin/nats-server", "/opt/homebrew/bin/nats-server"].find(existsSync)

export const overTls = `tls { cert_file: "${fixture("valid")}", key_file: "${fixture("key")}" }`

export type SignIn = Partial<Pick<NatsServer, "username" | "password" | "token" | "seed" | "jwt">>

export interface Kept {
  readonly subject: string
  readonly headers: string
  readonly body: string
}

/** Somebody else's NATS server. */
export interface OwnNats extends OwnProgram {
  readonly port: number
  /** Makes a stream. */
  readonly stream: (name: string, settings: object) => Promise<void>
  /** Makes a durable consumer of a stream. */
  readonly consumer: (stream: string, name: string, settings?: object) => Promise<void>
  /** Adds a message to the stream of its subject, and returns once the stream has it. */
  readonly published: (subject: string, bodies: ReadonlyArray<string>) => Promise<void>
  /** Messages of a consumer that are not delivered, and those that are not acknowledged. */
  readonly left: (stream: string, name: string) => Promise<readonly [waiting: number, unsettled: number]>
  /** What a stream holds. */
  readonly kept: (stream: string) => Promise<ReadonlyArray<Kept>>
}

/** As much of the answers as the suite reads. */
interface Answer {
  readonly error?: object
  readonly num_pending: number
  readonly num_ack_pending: number
  readonly state: { readonly first_seq: number; readonly messages: number }
  readonly message: { readonly subject: string; readonly hdrs?: string; readonly data?: string }
}

/** Answers to requests to the server's own subjects. */
const asked = (
  port: number,
  as: NatsServer,
  requests: ReadonlyArray<readonly [subject: string, body: object | string]>
) =>
  new Promise<ReadonlyArray<Answer>>((resolve, reject) => {
    const raw = connect(port, "127.0.0.1")
    const answers = new Map<number, Answer>()
    const said = ([subject, body]: readonly [string, object | string], i: number): string => {
      const text = typeof body === "string" ? body : JSON.stringify(body)
      return `PUB ${subject} _INBOX.owner.${i} ${Buffer.byteLength(text)}\r\n${text}\r\n`
    }
    const joined = (socket: Socket, nonce: string): void => {
      socket.write(`CONNECT ${signInTo(as, nonce)}\r\nSUB _INBOX.owner.* 1\r\n${requests.map(said).join("")}`)
    }
    const reading = (socket: Socket): void => {
      const cutter = new LineCutter(65_536, (line) =>
        line.startsWith("MSG") ? Number(/ (\d+)$/.exec(line)![1]) : null
      )
      socket.on("error", reject)
      socket.on("data", (chunk: Buffer) =>
        cutter.read(chunk, (line, body) => {
          if (line.startsWith("-ERR")) return reject(new Error(line))
          if (line.startsWith("INFO") && socket === raw) {
            const { needsTls, nonce } = greetingIn(line)
            if (!needsTls) return joined(raw, nonce)
            raw.removeAllListeners("data")
            const secure = connectTls({ socket: raw, ca: [authority], servername: "target.test" })
            reading(secure)
            return joined(secure, nonce)
          }
          if (!line.startsWith("MSG")) return
          answers.set(Number(/_INBOX\.owner\.(\d+) /.exec(line)![1]), JSON.parse(body.toString()) as Answer)
          if (answers.size < requests.length) return
          socket.destroy()
          resolve(requests.map((_, i) => answers.get(i)!))
        })
      )
    }
    reading(raw)
  })

/** `config`: what it has beside the address and the streams. `owner` may do everything. */
export const ownNats = (config: string, owner: SignIn): Effect.Effect<OwnNats, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* temporaryFolder
    const port = yield* freePort
    const file = join(home, "nats.conf")
    const address = `host: 127.0.0.1\nport: ${port}\njetstream { store_dir: "${join(home, "streams")}" }\n`
    writeFileSync(file, `${address}${config}\n`)
    const server = yield* ownProgram({ program: program!, args: ["-c", file], home, ready: "Server is ready" })
    const place = { host: "127.0.0.1", port, tls: false, tlsFirst: false, connectTimeout: 10 }
    const as: NatsServer = { ...place, username: "", password: "", token: "", seed: "", jwt: "", ...owner }
    return {
      port,
      ...server,
      stream: async (name, settings) => {
        const [answer] = await asked(port, as, [[`$JS.API.STREAM.CREATE.${name}`, { name, ...settings }]])
        if (answer!.error !== undefined) throw new Error(JSON.stringify(answer))
      },
      consumer: async (stream, name, settings = {}) => {
        const config = { durable_name: name, ack_policy: "explicit", ...settings }
        const call = `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.${name}`
        const [answer] = await asked(port, as, [[call, { stream_name: stream, config }]])
        if (answer!.error !== undefined) throw new Error(JSON.stringify(answer))
      },
      published: async (subject, bodies) => {
        const answers = await asked(
          port,
          as,
          bodies.map((body) => [subject, body] as const)
        )
        const refused = answers.find(({ error }) => error !== undefined)
        if (refused !== undefined) throw new Error(JSON.stringify(refused))
      },
      left: async (stream, name) => {
        const [info] = await asked(port, as, [[`$JS.API.CONSUMER.INFO.${stream}.${name}`, {}]])
        return [info!.num_pending, info!.num_ack_pending]
      },
      kept: async (stream) => {
        const [info] = await asked(port, as, [[`$JS.API.STREAM.INFO.${stream}`, {}]])
        const { first_seq, messages } = info!.state
        if (messages === 0) return []
        const all = await asked(
          port,
          as,
          Array.from({ length: messages }, (_, i) => [`$JS.API.STREAM.MSG.GET.${stream}`, { seq: first_seq + i }])
        )
        return all.map(({ message: { data = "", hdrs = "", subject } }) => ({
          subject,
          headers: Buffer.from(hdrs, "base64").toString(),
          body: Buffer.from(data, "base64").toString()
        }))
      }
    }
  })

/** A new key: its seed, and the key. The letters are those that the names of such keys begin with. */
const newKey = (letter: "O" | "A" | "U", filler: number) => {
  const prefix = { O: 14, A: 0, U: 20 }[letter] << 3
  const head = Buffer.from([(18 << 3) | (prefix >> 5), (prefix & 31) << 3])
  const seed = writtenKey(Buffer.concat([head, Buffer.alloc(32, filler)]))
  return { seed, ...natsKey(seed) }
}

export const userKey = newKey("U", 7)

/** The files of an operator with one account and one user of it. */
export const operated = (() => {
  const [operator, account, system] = [newKey("O", 1), newKey("A", 2), newKey("A", 3)]
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")
  const jwt = (by: typeof operator, sub: string, nats: object): string => {
    const claims = { jti: sub, iat: 1, iss: by.name, name: "a", sub, nats: { version: 2, ...nats } }
    const signed = `${encoded({ typ: "JWT", alg: "ed25519-nkey" })}.${encoded(claims)}`
    return `${signed}.${by.signed(signed)}`
  }
  const all = { subs: -1, data: -1, payload: -1 }
  const unlimited = { ...all, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
  const limits = { ...unlimited, ...storage }
  const accounts = [
    `${account.name}: ${jwt(operator, account.name, { type: "account", limits })}`,
    `${system.name}: ${jwt(operator, system.name, { type: "account", limits: unlimited })}`
  ]
  return {
    config: [
      `operator: ${jwt(operator, operator.name, { type: "operator" })}`,
      `system_account: ${system.name}`,
      "resolver: MEMORY",
      `resolver_preload: { ${accounts.join(", ")} }`
    ].join("\n"),
    user: { seed: userKey.seed, jwt: jwt(account, userKey.name, { type: "user", ...all }) }
  }
})()
