import { Effect, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { attempt, EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/** The files of the home folder. */
export interface Home {
  readonly path: string
  /** The data directory. It exists only after initdb has completed. */
  readonly data: string
  readonly log: string
  /** The server's password, readable by the owner only. There is no other copy. */
  readonly password: string
  /** The port chosen at the first start. */
  readonly port: string
  /** Locked while a process searches for the server or starts it. */
  readonly startLock: string
  /** Locked by the process that started the server, while both are alive. */
  readonly ownerLock: string
}

/** Creates the folder if it does not exist, accessible to its owner only. */
export const open = (path: string): Effect.Effect<Home, EmbeddedPostgresError> =>
  attempt(
    `The folder ${path} cannot be used for PostgreSQL: TIDEGATE_HOME must be one that this user may write to`,
    () => {
      mkdirSync(path, { recursive: true, mode: 0o700 })
      // One name for each folder, because a running server is recognised by the path of its data.
      const real = realpathSync(path)
      return {
        path: real,
        data: join(real, "data"),
        log: join(real, "postgres.log"),
        password: join(real, "password"),
        port: join(real, "port"),
        startLock: join(real, "start.lock"),
        ownerLock: join(real, "owner.lock")
      }
    }
  )

/** The password, created at the first call. Call it while holding the start lock. */
export const password = Effect.fnUntraced(function* (home: Home) {
  if (existsSync(home.data) && !existsSync(home.password)) {
    return yield* new EmbeddedPostgresError({
      message: `${home.password} is missing, and ${home.data} does not open without it: bring it back, or move the data away`
    })
  }
  return yield* attempt(`The password in ${home.path} cannot be kept`, () => {
    if (!existsSync(home.password)) writeDurably(home.password, randomBytes(24).toString("base64url"))
    return Redacted.make(readFileSync(home.password, "utf8"))
  })
})

/** The stored port; undefined if there is none. */
export const rememberedPort = (home: Home): number | undefined => {
  const port = existsSync(home.port) ? Number(readFileSync(home.port, "utf8")) : NaN
  return Number.isInteger(port) ? port : undefined
}

export const rememberPort = (home: Home, port: number): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`The port in ${home.path} cannot be kept`, () => writeDurably(home.port, String(port)))

/** Writes the file completely or not at all, even if the machine stops. */
const writeDurably = (path: string, content: string) => {
  const unfinished = `${path}.new`
  writeFileSync(unfinished, content, { mode: 0o600, flush: true })
  renameDurably(unfinished, path)
}

/** Renames so that the new name survives a crash of the machine. */
export const renameDurably = (from: string, to: string): void => {
  renameSync(from, to)
  const folder = openSync(dirname(to), "r")
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Changes the owner of the data to the user that will run the server; that user depends on our own privileges. */
export const giveData = (home: Home, owner: number): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`The ownership of ${home.data} cannot be changed`, () => {
    if (statSync(home.data).uid === owner) return
    for (const entry of readdirSync(home.data, { recursive: true, encoding: "utf8" })) {
      lchownSync(join(home.data, entry), owner, owner)
    }
    // Last, because the owner of the folder itself shows whether this is done.
    lchownSync(home.data, owner, owner)
  })

const logLimit = 10 * 1024 * 1024

/** Renames a log of more than 10 MB; the previously renamed one is deleted. */
export const rotateLog = (home: Home): Effect.Effect<void, EmbeddedPostgresError> =>
  attempt(`The log ${home.log} cannot be rotated`, () => {
    if (logEnd(home) > logLimit) renameSync(home.log, `${home.log}.1`)
  })

/** Position at which the next line of the log begins. */
export const logEnd = (home: Home): number => statSync(home.log, { throwIfNoEntry: false })?.size ?? 0

const excerptLimit = 16 * 1024

/** The log since a position; at most its last 16 KB. */
export const logSince = (home: Home, position: number): string => {
  if (!existsSync(home.log)) return ""
  const file = openSync(home.log, "r")
  try {
    const end = fstatSync(file).size
    const excerpt = Buffer.alloc(Math.min(Math.max(end - position, 0), excerptLimit))
    return excerpt.toString("utf8", 0, readSync(file, excerpt, 0, excerpt.length, end - excerpt.length))
  } finally {
    closeSync(file)
  }
}
