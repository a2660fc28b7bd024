import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { connectors } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { hasSecrets, sealed, secretsIn, unsealed } from "@tidegate/connectors/SecretSettings"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { readAuth, sealAuth } from "./AuthColumn.ts"
import { Secrets } from "./Secrets.ts"
import { query } from "../Transaction.ts"

/** Rows read by one statement. */
const lookedAt = 200

interface Row {
  readonly id: string
  readonly team_id: string
  readonly config: Config
  readonly auth: string | null
}

/**
 * Encrypts settings of destinations that were stored before they counted as secrets. A row that has been changed meanwhile is
 * skipped, because that write has encrypted it. Values that cannot be read stay as they are. Returns how many rows it has
 * written. Before it runs, every process has to be of a version that reads such settings encrypted.
 */
export const sealSettings: Effect.Effect<number, GatewayError, SqlClient.SqlClient | Secrets> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const secrets = yield* Secrets
    let written = 0
    for (const row of connectors.filter(hasSecrets)) {
      for (let after: string | null = ""; after !== null;) {
        const rows: ReadonlyArray<Row> = yield* query(sql<Row>`
          select id, team_id, config, auth from destinations where type = ${row.type} and id > ${after}
          order by id limit ${lookedAt}`)
        for (const one of rows.filter(({ config }) => secretsIn(row, config).length > 0)) {
          const auth = yield* Effect.option(readAuth(secrets, "destinations", one))
          if (auth._tag === "None") continue
          const next = sealed(row, unsealed({ config: one.config, auth: auth.value }))
          const changed = yield* query(sql`
            update destinations set config = ${JSON.stringify(next.config)}::jsonb,
              auth = ${yield* sealAuth(secrets, "destinations", one, next.auth)}
            where id = ${one.id} and config = ${JSON.stringify(one.config)}::jsonb and auth is not distinct from ${one.auth}
            returning 1`)
          written += changed.length
        }
        after = rows.length < lookedAt ? null : rows.at(-1)!.id
      }
    }
    return written
  }
)
