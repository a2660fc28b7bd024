import { randomBytes } from "node:crypto"
import { open, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import { agreement, serverVersion } from "@tidegate/storage/Agreement"
import { objectionTo } from "@tidegate/storage/Fitness"
import { loadSecretKeys, parseSecretKeys } from "@tidegate/storage/secrets/Secrets"
import { bootstrapTeam } from "@tidegate/storage/teams/Teams"
import { prepareHome } from "./Home.ts"
import { type Settings, SettingsError } from "./Settings.ts"

/** Path of the demo team's generated API key, readable by the owner only. */
export const apiKeyFile = (home: string): string => join(home, "api-key")

/**
 * Whether this process sets the API key of the demo team. A runner has no API: a key that it generated in its own home would replace the one
 * of the edges, and nobody would know it.
 */
export const bringsApiKey = ({ apiKey, role }: Settings): boolean => apiKey !== null || role !== "runner"

/** Makes the home folder, unless nothing is kept there: then this user need not be able to write anywhere. */
export const makeHome = Effect.fnUntraced(function* (settings: Settings) {
  const { apiKey, databaseUrl, home, secretKeys } = settings
  if ((apiKey !== null || !bringsApiKey(settings)) && databaseUrl !== null && secretKeys !== null) return
  yield* prepareHome(home)
})

/** The key in the file, which is generated at the first start. */
const keptApiKey = (path: string) =>
  Effect.tryPromise({
    try: async () => {
      let isNew = true
      try {
        const file = await open(path, "wx", 0o600)
        await file.write(`gwk_${randomBytes(32).toString("hex")}\n`)
        await file.sync()
        await file.close()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
        isNew = false
      }
      return { apiKey: Redacted.make((await readFile(path, "utf8")).trim()), isNew }
    },
    catch: (error) =>
      new SettingsError({ message: `TIDEGATE_HOME: the API key file cannot be kept there: ${String(error)}` })
  })

/**
 * Where the user finds the API key: in the setting, in the file of this path, or (null) with the process that has made it. A runner has no API
 * and no key either.
 */
export type ApiKeyPlace = { readonly setting: "TIDEGATE_API_KEY" } | { readonly path: string } | null

/**
 * Makes the API key of the demo team valid. A key that this process has generated does not replace the one of a database that it shares:
 * every edge with a home of its own would otherwise make the keys of the others invalid.
 */
export const settleApiKey = Effect.fnUntraced(function* (settings: Settings) {
  if (!bringsApiKey(settings)) return null
  if (settings.apiKey !== null) {
    yield* bootstrapTeam({ apiKey: settings.apiKey })
    return { setting: "TIDEGATE_API_KEY" } as const
  }
  const path = apiKeyFile(settings.home)
  const { apiKey, isNew } = yield* keptApiKey(path)
  if (yield* bootstrapTeam({ apiKey, keepsOther: settings.databaseUrl !== null })) return { path }
  // It would be taken for a valid one.
  if (isNew) yield* Effect.promise(() => rm(path, { force: true }))
  return null
})

/** The encryption keys of secrets at rest: configured, or stored in the home folder. */
export const loadKeys = Effect.fnUntraced(function* (settings: Settings) {
  if (settings.secretKeys === null) return yield* loadSecretKeys(settings.home)
  return yield* Effect.mapError(
    Effect.fromResult(parseSecretKeys(Redacted.value(settings.secretKeys))),
    ({ message }) => new SettingsError({ message: `TIDEGATE_SECRET_KEYS: ${message}` })
  )
})

/** The oldest major version that the schema and the statements support. */
export const oldestPostgres = 15

/** Checked before the first migration, which would fail at a statement that an older server does not support. */
export const serverIsNewEnough = Effect.gen(function* () {
  const major = Math.floor((yield* serverVersion) / 10_000)
  if (major < oldestPostgres) {
    yield* new SettingsError({
      message: `DATABASE_URL: this is PostgreSQL ${major}; ${oldestPostgres} or later is needed`
    })
  }
})

/** Checked before the first migration, so that a process changes nothing in a database that it cannot use. */
export const databaseFits = Effect.flatMap(objectionTo, (objection) => {
  switch (objection?.kind) {
    case "pooled":
      return new SettingsError({
        message:
          "DATABASE_URL: a pooler in between drops the settings of the gateway's sessions; connect to the server itself, because the gateway has pools of its own"
      })
    case "foreign":
      return new SettingsError({
        message: `DATABASE_URL: this database has tables that are not the gateway's (${objection.tables.join(", ")}); give the gateway a database of its own`
      })
    case "newer":
      return new SettingsError({
        message: `this database was migrated to ${objection.migration} by a newer version, and this version ends at ${objection.known}; start the newer version, or restore a backup from before its migration`
      })
    default:
      return Effect.void
  }
})

/**
 * Checks that this process and the database belong together, before anything else runs: this process's keys can read the secrets in it,
 * and its rows use this version's number of shards.
 */
export const agreeWithDatabase = Effect.gen(function* () {
  const { keysFit, shards } = yield* agreement(shardsPerGroup)
  if (!keysFit) {
    yield* new SettingsError({
      message:
        "TIDEGATE_SECRET_KEYS: the secrets in this database were encrypted with another key; give this process the same keys as the others"
    })
  }
  if (shards !== shardsPerGroup) {
    yield* new SettingsError({
      message: `this database was sharded into ${shards} shards, this version uses ${shardsPerGroup}`
    })
  }
})

const defaultRunnerPort = 34_431

/** The port of a listener on `port` of `host`: `port` itself, or a free one for 0. */
const probe = (host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(port, host, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : port))
    })
  })

/** A port for the runner: the configured one, else the default, else (another process uses it) any free one. */
export const pickRunnerPort = ({ runnerHost, runnerPort }: Settings): Effect.Effect<number, SettingsError> =>
  runnerPort !== null && runnerPort !== 0
    ? Effect.succeed(runnerPort)
    : Effect.tryPromise({
        try: () => probe(runnerHost, runnerPort ?? defaultRunnerPort).catch(() => probe(runnerHost, 0)),
        catch: (error) =>
          new SettingsError({ message: `TIDEGATE_RUNNER_HOST: no port can be opened there: ${String(error)}` })
      })
