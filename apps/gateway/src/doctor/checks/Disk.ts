import { statfs } from "node:fs/promises"
import { Effect } from "effect"
import { type Finding, fine, Installation, type MachineCheck, notice, sizeOf, wrong } from "../Check.ts"

const gigabyte = 1024 ** 3

/** Below the first number of bytes PostgreSQL may stop in the middle of a checkpoint; below the second part it is time to act. */
const [least, scarcePart] = [gigabyte, 0.1] as const

export interface Space {
  readonly path: string
  readonly free: number
  readonly total: number
  /** The share of file entries that are free, from 0 to 1; 1 where the file system has no such limit. */
  readonly entries: number
}

export const judgeSpace = ({ entries, free, path, total }: Space): Finding => {
  const says = `${sizeOf(free)} of ${sizeOf(total)} are free at ${path}`
  const wayOut = `make room there, or move the folder to a larger disk (TIDEGATE_HOME); shorter retention frees space at the end of the day`
  if (entries < 0.01) return wrong(`almost no file can be created at ${path}: its file entries are used up`, wayOut)
  if (free < least) return wrong(`${says}; without space the database stops`, wayOut)
  return free < total * scarcePart ? notice(says, wayOut) : fine(says)
}

/** The space for the embedded database. Space on the server of `DATABASE_URL` cannot be seen from here. */
export const disk: MachineCheck = {
  of: "machine",
  name: "disk",
  about: "the space for the embedded database",
  look: Effect.gen(function* () {
    const { settings } = yield* Installation
    if (settings.databaseUrl !== null) {
      return fine("the database is on another server, whose disk cannot be seen from here; watch it there")
    }
    const found = yield* Effect.tryPromise(() => statfs(settings.home))
    return judgeSpace({
      path: settings.home,
      free: found.bavail * found.bsize,
      total: found.blocks * found.bsize,
      entries: found.files === 0 ? 1 : found.ffree / found.files
    })
  })
}
