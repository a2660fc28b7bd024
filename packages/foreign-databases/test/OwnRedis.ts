import { Effect, type Scope } from "effect"
import { Redis } from "ioredis"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { auth } from "./Brokering.ts"
import { fixture, freePort, type OwnProgram, ownProgram } from "./OwnBroker.ts"

/** The program of a real Redis, where one is installed (`apt-get install redis-server`). */
export const program = ["/usr/bin/redis-server", "/opt/homebrew/bin/redis-server"].find(existsSync)

/** Somebody else's Redis, which speaks TLS too. The user `writer` may do nothing but add to streams `orders:…`. */
export interface OwnRedis extends OwnProgram {
  readonly port: number
  readonly tlsPort: number
  /** What a stream holds. */
  readonly entries: (stream: string, database?: number) => Promise<ReadonlyArray<Readonly<Record<string, string>>>>
  /** Any command, as the owner. */
  readonly owner: (name: string, ...values: ReadonlyArray<string>) => Promise<unknown>
}

export const ownRedis: Effect.Effect<OwnRedis, never, Scope.Scope> = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const [port, tlsPort] = yield* Effect.all([freePort, freePort])
  const file = join(home, "redis.conf")
  writeFileSync(
    file,
    [
      "bind 127.0.0.1",
      `port ${port}`,
      `tls-port ${tlsPort}`,
      `tls-cert-file ${fixture("valid")}`,
      `tls-key-file ${fixture("key")}`,
      `tls-ca-cert-file ${fixture("authority")}`,
      "tls-auth-clients no",
      `dir ${home}`,
      "appendonly yes",
      "appendfsync always",
      'save ""',
      "user default on >owner ~* &* +@all",
      `user writer on >${auth.password} ~orders:* -@all +xadd +select`,
      ""
    ].join("\n")
  )
  const server = yield* ownProgram({ program: program!, args: [file], home, ready: "Ready to accept connections" })
  const asOwner = async <A>(database: number, use: (redis: Redis) => Promise<A>): Promise<A> => {
    const redis = new Redis({ port, host: "127.0.0.1", password: "owner", db: database })
    try {
      return await use(redis)
    } finally {
      redis.disconnect()
    }
  }
  return {
    port,
    tlsPort,
    ...server,
    entries: (stream, database = 0) =>
      asOwner(database, async (redis) => {
        const all = await redis.xrange(stream, "-", "+")
        return all.map(([, fields]) =>
          Object.fromEntries(fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]!]] : [])))
        )
      }),
    owner: (name, ...values) => asOwner(0, (redis) => redis.call(name, ...values))
  }
})
