import { Effect, Exit, Scope } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseLink } from "../support/DatabaseLink.ts"
import { clockLibrary, FakeClock } from "../support/FakeClock.ts"
import { programIn } from "../support/GatewayProcess.ts"
import { query } from "../support/sql.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { checkOutPrevious, whyWithoutPrevious } from "../upgrade/Previous.ts"
import { type Postgres, standalone } from "./Postgres.ts"
import { SmallDisk } from "./SmallDisk.ts"
import { pair } from "./Standby.ts"

/** The parts that a fault can affect, in addition to the processes and the database of every cluster. */
export interface Rig {
  readonly postgres: Postgres
  /** The settings of runner-1, and those of all processes. */
  readonly runner1?: Readonly<Record<string, string>>
  readonly all?: Readonly<Record<string, string>>
  /** The program that the processes run at first. Absent: this version. */
  readonly program?: string
  readonly link?: DatabaseLink
  readonly clock?: FakeClock
  readonly redis?: { readonly stop: () => Promise<void>; readonly start: () => Promise<void> }
  readonly disk?: SmallDisk
  readonly promote?: () => Promise<void>
  readonly close: () => Promise<void>
}

/** One kind of surroundings of a cluster. */
interface Surroundings {
  /** Why this environment is not possible on this machine. Null: it is possible. */
  readonly whyNot: () => Promise<string | null>
  readonly build: (folder: string) => Promise<Rig>
}

const always = (): Promise<null> => Promise.resolve(null)

/** With its own PostgreSQL server, and one more part. */
const beside =
  (
    more: (
      postgres: Postgres,
      folder: string
    ) => Promise<Omit<Rig, "postgres" | "close"> & { close?: () => Promise<void> }>
  ) =>
  async (folder: string): Promise<Rig> => {
    const postgres = await standalone(folder)
    const made = await more(postgres, folder).catch(async (cause: unknown) => {
      await postgres.close()
      throw cause
    })
    return {
      ...made,
      postgres,
      close: async () => {
        await made.close?.()
        await postgres.close()
      }
    }
  }

/** The previous version, which is checked out from the history once for all rounds. */
let previous: Promise<string> | undefined
const previousProgram = (): Promise<string> =>
  (previous ??= (async () => {
    const scope = Scope.makeUnsafe()
    process.once("exit", () => Effect.runSync(Effect.ignore(Scope.close(scope, Exit.void))))
    return programIn(await checkOutPrevious(await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))))
  })())

export const surroundings = {
  cluster: { whyNot: always, build: beside(() => Promise.resolve({})) },
  host: { whyNot: always, build: beside(() => Promise.resolve({ all: { TIDEGATE_STANDBY: "on" } })) },
  link: {
    whyNot: always,
    build: beside(async (postgres) => {
      const link = await DatabaseLink.to(postgres.url)
      return { link, runner1: { DATABASE_URL: link.url }, close: () => link.close() }
    })
  },
  clock: {
    whyNot: async () => ((await clockLibrary()) === null ? "apt-get download libfaketime gives no library" : null),
    build: beside(async (_, folder) => {
      const clock = await FakeClock.in(folder)
      return { clock, runner1: clock.settings }
    })
  },
  redis: {
    whyNot: async () => {
      const { noOwnRedis, noRedis } = await import("../support/Redis.ts")
      return noOwnRedis ? (noRedis ?? "the server of REDIS_URL is not for us to stop") : null
    },
    build: beside(async () => {
      const { Redis } = await import("../support/Redis.ts")
      const redis = await Redis.start()
      return { redis, all: { TIDEGATE_REDIS_URL: redis.url }, close: () => redis.stop() }
    })
  },
  disk: {
    whyNot: () => Promise.resolve(SmallDisk.whyNot()),
    build: async (folder) => {
      const disk = SmallDisk.in(folder)
      const postgres = await standalone(disk.folder)
      const close = async (): Promise<void> => {
        await postgres.close()
        disk.close()
      }
      return { postgres, disk, close }
    }
  },
  previous: { whyNot: whyWithoutPrevious, build: beside(async () => ({ program: await previousProgram() })) },
  standby: {
    whyNot: always,
    build: async (folder) => {
      const scope = Scope.makeUnsafe()
      const parent = join(folder, "servers")
      mkdirSync(parent)
      const { primary, standby, synchronize } = await Effect.runPromise(pair(parent).pipe(Scope.provide(scope)))
      const link = await DatabaseLink.to(primary.url)
      const none = (): never => {
        throw new Error("this fault is not for a database with a standby")
      }
      const postgres: Postgres = {
        url: link.url,
        query: (statement, parameters) => query(link.url, statement, parameters),
        kill: none,
        freeze: none,
        slowDown: none,
        back: none,
        close: async () => {
          await link.close()
          await Effect.runPromise(Scope.close(scope, Exit.void))
        }
      }
      return {
        postgres,
        promote: async () => {
          await synchronize()
          await link.cut()
          link.lead(standby.url)
          await standby.ask("select pg_promote(true)")
          await link.mend()
        },
        close: postgres.close
      }
    }
  }
} satisfies Record<string, Surroundings>

export type Surrounded = keyof typeof surroundings
