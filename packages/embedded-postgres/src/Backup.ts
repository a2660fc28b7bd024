import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, type Redacted, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import { mkdir, readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { copyFile, filesIn, forEachFile, syncFolders, writeSummed } from "./Checksums.ts"
import { EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import * as Home from "./Home.ts"

/*
 * A base backup of the embedded server while it works, by PostgreSQL's low-level API ("Making a Base Backup Using the Low Level
 * API" in its manual). The npm packages with the server contain no pg_basebackup. Files are copied while the server writes to them; the
 * write-ahead log from the backup's beginning to its end is copied too, and the restored server repeats it from the first checkpoint on.
 * Whole pages are in that log, so pages that were read in the middle of a write do no harm.
 */

/** What a restored server makes anew; the folders themselves are needed. */
const emptied = [
  "pg_wal",
  "pg_replslot",
  "pg_dynshmem",
  "pg_notify",
  "pg_serial",
  "pg_snapshots",
  "pg_stat_tmp",
  "pg_subtrans"
]

const leftOut = (path: string): boolean => {
  const [top = "", ...rest] = path.split("/")
  const name = rest.at(-1) ?? top
  return (
    emptied.includes(top) ||
    ["postmaster.pid", "postmaster.opts", "backup_label", "tablespace_map", "backup_label.old"].includes(path) ||
    name === "pg_internal.init" ||
    path.includes("pgsql_tmp")
  )
}

const control = "global/pg_control"

const failed = (message: string) => new EmbeddedPostgresError({ message })

/** The names of the log's files are a timeline, and a number that rises. */
const segment = /^[0-9A-F]{24}$/

const step = <A>(run: () => Promise<A>): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const code = (cause as NodeJS.ErrnoException).code
      const path = (cause as NodeJS.ErrnoException).path
      const why = code === undefined ? String(cause) : `${code}${path === undefined ? "" : ` at ${path}`}`
      return new EmbeddedPostgresError({ message: `A file cannot be copied: ${why}`, cause })
    }
  })

/** The control file is written in one piece, and read until two readings agree. */
const copyControl = Effect.fnUntraced(function* (data: string, to: string) {
  let before = yield* step(() => readFile(join(data, control)))
  for (;;) {
    const after = yield* step(() => readFile(join(data, control)))
    if (after.equals(before)) break
    before = after
  }
  const content = before
  return yield* step(() => writeSummed(join(to, control), content))
})

/**
 * Copies the data of a running server to the folder `to`, which must not exist. Returns the checksums of the copies by their paths. `superuserUrl`:
 * the server's. All that was committed before this began is in the copy.
 */
export const copyData = Effect.fnUntraced(function* (
  home: string,
  superuserUrl: Redacted.Redacted,
  to: string
): Effect.fn.Return<ReadonlyMap<string, string>, EmbeddedPostgresError, Scope.Scope> {
  const { data } = yield* Home.open(home)
  const connection = yield* Effect.mapError(
    PgConnection.make({ url: superuserUrl }),
    (cause) => new EmbeddedPostgresError({ message: "The backup cannot be made: the server does not answer", cause })
  )
  const ask = (statement: string, parameters: ReadonlyArray<unknown> = []) =>
    connection.query(statement, parameters).pipe(
      Effect.mapError(({ reason }) => {
        const { cause } = reason
        const why = cause instanceof Error ? cause.message : String(cause)
        return new EmbeddedPostgresError({ message: `The backup cannot be made: the server says: ${why}`, cause })
      }),
      Effect.map(({ rows }) => rows[0] as Readonly<Record<string, string>>)
    )

  if ((yield* step(() => readdir(join(data, "pg_tblspc")))).length > 0) {
    return yield* failed("The backup cannot be made: the server has tablespaces outside of its folder")
  }
  // Keeps the log from here on until this session ends, however long the copying takes.
  yield* ask("select slot_name from pg_create_physical_replication_slot($1::text::name, true, true)", [
    `tidegate_backup_${randomBytes(8).toString("hex")}`
  ])
  const { first } = yield* ask("select pg_walfile_name(pg_backup_start('tidegate', true)) as first")
  const sums = new Map<string, string>()
  const files = yield* step(() => filesIn(data))
  const wanted = files.filter((path) => !leftOut(path) && path !== control)
  yield* step(() =>
    forEachFile(wanted, async (path) => {
      // A file may have been removed meanwhile: the log says so again.
      const sum = await copyFile(join(data, path), join(to, path))
      if (sum !== null) sums.set(path, sum)
    })
  )
  sums.set(control, yield* copyControl(data, to))

  // Waits for no archive, because there is none. The end of the backup also ends the file of the log that it is in.
  const { label, last } = yield* ask(
    "select pg_walfile_name(lsn) as last, labelfile as label from pg_backup_stop(false)"
  )
  const log = (yield* step(() => readdir(join(data, "pg_wal"))))
    .filter((name) => segment.test(name) && name >= first! && name <= last!)
    .sort()
  if (log.at(0) !== first || log.at(-1) !== last) {
    return yield* failed("The backup cannot be made: a part of the write-ahead log is gone; try again")
  }
  for (const name of log) {
    const sum = yield* step(() => copyFile(join(data, "pg_wal", name), join(to, "pg_wal", name)))
    if (sum === null)
      return yield* failed("The backup cannot be made: a part of the write-ahead log is gone; try again")
    sums.set(`pg_wal/${name}`, sum)
  }
  sums.set("backup_label", yield* step(() => writeSummed(join(to, "backup_label"), label!)))
  return sums
})

/** The folders of a data directory. Tools that keep backups often lose empty folders, and a server does not start without these. */
const folders = [
  ...emptied,
  "pg_commit_ts",
  "pg_logical/mappings",
  "pg_logical/snapshots",
  "pg_multixact/members",
  "pg_multixact/offsets",
  "pg_stat",
  "pg_tblspc",
  "pg_twophase",
  "pg_wal/archive_status",
  "pg_wal/summaries",
  "pg_xact"
]

/**
 * Copies the data of a backup to a home folder without data. The data has its name only when it is complete, so an interrupted copy is never
 * taken for it.
 */
export const restoreData = Effect.fnUntraced(function* (
  from: string,
  home: string
): Effect.fn.Return<void, EmbeddedPostgresError> {
  const { data } = yield* Home.open(home)
  const unfinished = `${data}.${randomBytes(4).toString("hex")}.new`
  yield* step(async () => {
    for (const folder of folders) await mkdir(join(unfinished, folder), { recursive: true, mode: 0o700 })
    await forEachFile(await filesIn(from), async (path) => {
      await copyFile(join(from, path), join(unfinished, path))
    })
    await syncFolders(unfinished)
    Home.renameDurably(unfinished, data)
  })
})
