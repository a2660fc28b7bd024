import { Effect } from "effect"
import { createHash } from "node:crypto"
import { mkdir, open, readdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join, relative, sep } from "node:path"
import { EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/** The file with the checksums of all others in a folder, in the format of `sha256sum`, so that any machine can check them. */
export const sumsFile = "SHA256SUMS"

const blockBytes = 262_144

/** Files that are worked on at once: a database has thousands of small ones, and each waits for the disk. */
const atOnce = 16

/** Calls `work` for each path, some at a time. Rejects with the first failure, when all that had begun has ended. */
export const forEachFile = async (paths: Iterable<string>, work: (path: string) => Promise<void>): Promise<void> => {
  const rest = [...paths].values()
  let isFailed = false
  const worker = async (): Promise<void> => {
    for (const path of rest) {
      if (isFailed) return
      try {
        await work(path)
      } catch (error) {
        isFailed = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, worker))
  const failure = ends.find((end) => end.status === "rejected")
  if (failure !== undefined) throw failure.reason
}

/**
 * Copies a file and returns its SHA-256. Only its owner may read the copy, which is on disk when this ends. Null: the source does
 * not exist.
 */
export const copyFile = async (from: string, to: string): Promise<string | null> => {
  const source = await open(from, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null
    throw error
  })
  if (source === null) return null
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    const target = await open(to, "wx", 0o600)
    try {
      const hash = createHash("sha256")
      const block = Buffer.allocUnsafe(blockBytes)
      for (;;) {
        const { bytesRead } = await source.read(block, 0, blockBytes, null)
        if (bytesRead === 0) break
        const part = block.subarray(0, bytesRead)
        hash.update(part)
        for (let at = 0; at < part.length;) at += (await target.write(part, at)).bytesWritten
      }
      await target.sync()
      return hash.digest("hex")
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** Writes a new file in the same way, and returns its SHA-256. */
export const writeSummed = async (path: string, content: string | Uint8Array): Promise<string> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(path, content, { mode: 0o600, flag: "wx", flush: true })
  return createHash("sha256").update(content).digest("hex")
}

/** The SHA-256 of a file. */
const sumOf = async (path: string): Promise<string> => {
  const file = await open(path, "r")
  try {
    const hash = createHash("sha256")
    const block = Buffer.allocUnsafe(blockBytes)
    for (;;) {
      const { bytesRead } = await file.read(block, 0, blockBytes, null)
      if (bytesRead === 0) return hash.digest("hex")
      hash.update(block.subarray(0, bytesRead))
    }
  } finally {
    await file.close()
  }
}

/** The files below a folder, by their paths in it, which have `/` on every platform. */
export const filesIn = async (folder: string): Promise<ReadonlyArray<string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
}

/** Writes all folders below this one to disk, so that their files keep their names if the machine stops. */
export const syncFolders = async (folder: string): Promise<void> => {
  const below = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isDirectory())
  const paths = [...below.map((entry) => join(entry.parentPath, entry.name)), folder]
  await forEachFile(paths, async (path) => {
    const file = await open(path, "r")
    await file.sync().finally(() => file.close())
  })
}

export const writeSums = async (folder: string, sums: ReadonlyMap<string, string>): Promise<void> => {
  const lines = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, sum]) => `${sum}  ${path}\n`)
  await writeFile(join(folder, sumsFile), lines.join(""), { mode: 0o600, flag: "wx", flush: true })
}

const line = /^([0-9a-f]{64}) {2}(.+)$/

/**
 * Checks that a folder has exactly the files of its checksums, and that each has its content. So a damaged, missing or added file
 * is found, and a damaged list of checksums too. Returns the paths.
 */
export const checkSums = Effect.fnUntraced(function* (folder: string) {
  const damaged = (what: string) => new EmbeddedPostgresError({ message: `The backup ${folder} is damaged: ${what}` })
  const text = yield* Effect.tryPromise({
    try: () => readFile(join(folder, sumsFile), "utf8"),
    catch: (cause) =>
      new EmbeddedPostgresError({ message: `${folder} is no complete backup: ${sumsFile} cannot be read there`, cause })
  })
  const sums = new Map<string, string>()
  for (const written of text.split("\n").slice(0, -1)) {
    const [, sum, path] = line.exec(written) ?? []
    if (sum === undefined || path === undefined) return yield* damaged(`a line of ${sumsFile} is no checksum`)
    // The paths lead nowhere else, whoever has written the list.
    if (path.startsWith("/") || path.split("/").includes("..")) return yield* damaged(`${sumsFile} names ${path}`)
    sums.set(path, sum)
  }
  const present = yield* Effect.promise(() => filesIn(folder))
  const added = present.find((path) => path !== sumsFile && !sums.has(path))
  if (added !== undefined) return yield* damaged(`${added} is not in ${sumsFile}`)
  const faults: Array<string> = []
  yield* Effect.promise(() =>
    forEachFile(sums.keys(), async (path) => {
      const found = await sumOf(join(folder, path)).catch(() => null)
      if (found === null) faults.push(`${path} is missing, or is no file that can be read`)
      else if (found !== sums.get(path)) faults.push(`${path} has changed`)
    })
  )
  const [first] = faults.sort()
  if (first !== undefined)
    return yield* damaged(faults.length === 1 ? first : `${first}, and ${faults.length - 1} more`)
  return [...sums.keys()]
})
