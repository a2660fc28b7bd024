import { Effect } from "effect"
import { serverState } from "@tidegate/storage/diagnosis/ServerFacts"
import { oldestPostgres } from "../../Bootstrap.ts"
import { type DatabaseCheck, type Finding, fine, notice, sizeOf, wrong } from "../Check.ts"

const heldTooMuch = 1024 ** 3

export const server: DatabaseCheck = {
  of: "database",
  name: "server",
  about: "the version and state of PostgreSQL",
  look: Effect.map(serverState, ({ bytes, encoding, heldLog, isStandby, version }) => {
    const major = Math.floor(version / 10_000)
    const found: Array<Finding> = []
    if (major < oldestPostgres) {
      found.push(wrong(`this is PostgreSQL ${major}`, `use PostgreSQL ${oldestPostgres} or later`))
    }
    if (encoding !== "UTF8") {
      found.push(wrong(`the database stores text as ${encoding}`, "create the database with encoding 'UTF8'"))
    }
    if (isStandby) {
      found.push(
        wrong(
          "the server is a standby, which accepts no writes",
          "let DATABASE_URL lead to the primary, or promote this server"
        )
      )
    }
    if (heldLog > heldTooMuch) {
      found.push(
        notice(
          `the server keeps ${sizeOf(heldLog)} of its log for a replica that is not connected`,
          "connect the replica, or drop its slot (pg_replication_slots): the log grows until the disk is full"
        )
      )
    }
    return found.length > 0 ? found : fine(`PostgreSQL ${major} answers; the database has ${sizeOf(bytes)}`)
  })
}
