import { Effect } from "effect"
import { serverSettings as read } from "@tidegate/storage/diagnosis/ServerFacts"
import { type DatabaseCheck, type Finding, fine, notice, wrong } from "../Check.ts"

/** What a value of a setting means; null: it is right. */
interface Rule {
  readonly name: string
  readonly judge: (value: string) => Finding | null
}

const reload = "then select pg_reload_conf()"

const mustBeOn = (name: string, why: string): Rule => ({
  name,
  judge: (value) =>
    value === "on"
      ? null
      : wrong(
          `${name} is ${value}: ${why}`,
          `alter system set ${name} = on, ${reload}; the database or the role may have a value of its own`
        )
})

/** The settings that the gateway's promises depend on. A new one is a line. */
export const rules: ReadonlyArray<Rule> = [
  mustBeOn("fsync", "a crash of the server loses acknowledged requests and may destroy the database"),
  mustBeOn("full_page_writes", "a crash of the server may destroy pages of the database"),
  {
    name: "synchronous_commit",
    judge: (value) =>
      value === "off"
        ? wrong(
            "synchronous_commit is off: a crash of the server loses requests that were acknowledged",
            `alter system set synchronous_commit = on, ${reload}; the database or the role may have a value of its own`
          )
        : null
  },
  mustBeOn("autovacuum", "tables grow without end, and later the server stops accepting writes"),
  mustBeOn("track_counts", "autovacuum does not know what to do"),
  {
    name: "default_transaction_read_only",
    judge: (value) =>
      value === "off"
        ? null
        : wrong(
            "new transactions cannot write (default_transaction_read_only)",
            "set default_transaction_read_only = off where it was set: for the server, the database or the role"
          )
  },
  {
    name: "transaction_timeout",
    judge: (value) =>
      value === "0"
        ? null
        : notice(
            `transaction_timeout is ${value}: migrations and retention may need longer`,
            "set transaction_timeout = 0 for the role of the gateway"
          )
  }
]

export const judgeSettings = (values: ReadonlyMap<string, string>): ReadonlyArray<Finding> =>
  rules.flatMap(({ judge, name }) => {
    const value = values.get(name)
    return value === undefined ? [] : (judge(value) ?? [])
  })

export const serverSettings: DatabaseCheck = {
  of: "database",
  name: "settings",
  about: rules.map(({ name }) => name).join(", "),
  look: Effect.map(read(rules.map(({ name }) => name)), (values) => {
    const found = judgeSettings(values)
    return found.length > 0 ? found : fine("what is committed stays, and vacuum is on")
  })
}
