import { existsSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect, Layer, Redacted } from "effect"
import * as EmbeddedPostgres from "@tidegate/embedded-postgres/EmbeddedPostgres"
import * as Database from "@tidegate/storage/Database"
import { type KeyRing, Secrets } from "@tidegate/storage/secrets/Secrets"
import { loadKeys } from "./Bootstrap.ts"
import { embeddedHome } from "./Home.ts"
import { type Settings, settings, SettingsError } from "./Settings.ts"

/* The installation that the settings of an operator's command lead to. */

/** Small pools, because running gateways use the other connections of the database. */
const connections = { connections: 2, hotConnections: 1, journalConnections: 1, reportConnections: 1 }

/**
 * Refuses to run if there is no installation. In a wrong folder the command would otherwise create a new one, find it empty, and
 * mislead the operator.
 */
export const isInstalled = Effect.fnUntraced(function* (given: Settings) {
  const missing = [
    ...(given.databaseUrl === null ? [join(embeddedHome(given.home), "data")] : []),
    ...(given.secretKeys === null ? [join(given.home, "secrets.key")] : [])
  ].find((path) => !existsSync(path))
  if (missing === undefined) return
  yield* new SettingsError({
    message:
      `there is no installation here: ${missing} is missing. Run this where the gateway was started, ` +
      "or with its TIDEGATE_HOME, or its DATABASE_URL and TIDEGATE_SECRET_KEYS"
  })
})

/** Printed, because a relative TIDEGATE_HOME easily names the wrong folder. */
export const whereOf = ({ databaseUrl, home }: Settings): string => {
  if (databaseUrl === null) return home
  const url = URL.parse(Redacted.value(databaseUrl))
  return url === null ? "the database of DATABASE_URL" : `the database ${url.host}${url.pathname}`
}

/** The database and the secrets, with few connections. The embedded server is started if it does not run. */
export const databaseOf = (given: Settings, keys: KeyRing) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const url = given.databaseUrl ?? (yield* EmbeddedPostgres.start({ home: embeddedHome(given.home) })).url
      return Layer.merge(Database.layer({ url, ...connections }), Secrets.layer({ keys }))
    })
  )

export const installation = Layer.unwrap(
  Effect.gen(function* () {
    const given = yield* settings
    yield* isInstalled(given)
    yield* Console.error(`admin: works in ${whereOf(given)}`)
    return databaseOf(given, yield* loadKeys(given))
  })
)
