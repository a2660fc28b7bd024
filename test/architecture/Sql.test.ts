import { describe, expect, it } from "vitest"
import { folders, type Source, sourceOf, sourcesIn } from "./Tree.ts"

/**
 * SQL stands in `packages/storage`. The others call its functions and services, and name what these need as `Database`;
 * of SQL they see the type of a failure, because who may repeat what is theirs to decide.
 */
const home = "packages/storage"

/** It starts a server of its own and makes its roles and its database, before there is anything that storage could read. */
const ownServer = "packages/embedded-postgres"

/** It writes to databases of other people, which have nothing of the gateway's. */
const foreignServers = "packages/foreign-databases"

/** Still to be moved. The list only shrinks. */
const notYet: ReadonlySet<string> = new Set()

const module = /^(?:effect\/sql|@effect\/sql)/
const client = /\b(?:HotSql|JournalSql|ReportSql|SqlClient|PgClient|PgConnection)\b/
const statement =
  /[`"']\s*(?:select\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|truncate\s|with\s+(?:recursive\s+)?\w+\s+as\s|(?:create|alter|drop)\s+(?:table|index|role|database|type)\s)/i

const faults = ({ code, file, imports }: Source): ReadonlyArray<string> => {
  const foreign = imports.filter(
    ({ from, isType, names }) => module.test(from) && !(isType && names.every((name) => name === "SqlError"))
  )
  const taken = client.exec(code)
  const written = statement.exec(code)
  return [
    ...foreign.map(({ from }) => `${file} imports ${from}`),
    ...(taken === null ? [] : [`${file} uses ${taken[0]}`]),
    ...(written === null ? [] : [`${file} has a statement: ${written[0].trim()}`])
  ]
}

const elsewhere = folders.filter((folder) => ![home, ownServer, foreignServers].includes(folder)).flatMap(sourcesIn)

describe("SQL", () => {
  it(`SQL is written only in ${home}`, () => {
    expect(elsewhere.filter(({ file }) => !notYet.has(file)).flatMap(faults)).toEqual([])
  })

  it("The exceptions of the SQL rule are all needed", () => {
    const needed = new Set(elsewhere.filter((source) => faults(source).length > 0).map(({ file }) => file))
    expect([...notYet].filter((file) => !needed.has(file))).toEqual([])
  })

  it("The SQL rule recognizes SQL in the storage package", () => {
    expect(sourcesIn(home).filter((source) => faults(source).length === 3).length).toBeGreaterThan(20)
  })

  it("The SQL rule recognizes every form of SQL", () => {
    const found = (text: string) => faults(sourceOf("Bad.ts", text)).map((fault) => fault.replace("Bad.ts ", ""))
    expect(found('import type { SqlError } from "effect/sql"')).toEqual([])
    expect(found('import { SqlError } from "effect/sql"')).toEqual(["imports effect/sql"])
    expect(found('import type { SqlClient, SqlError } from "effect/sql"')).toEqual([
      "imports effect/sql",
      "uses SqlClient"
    ])
    expect(found('import * as Pg from "@effect/sql-pg/PgConnection"')).toHaveLength(2)
    expect(found('import * as Database from "@tidegate/storage/Database"\nconst sql = Database.HotSql')).toEqual([
      "uses HotSql"
    ])
    expect(found("run(`\n  with due as (select 1) select * from due`)")).toHaveLength(1)
    expect(found("run('DELETE FROM events')")).toHaveLength(1)
    expect(found("// `select 1` is what it asks\n")).toEqual([])
  })
})
