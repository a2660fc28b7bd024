import { Effect } from "effect"
import type { Scope } from "effect"
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const memory = "/dev/shm"
const roomNeeded = 2 * 1024 ** 3

/** In memory where the system has a place for that and 2 GB of it are free: a database there is made several times faster. */
const parent = () => {
  if (!existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize >= roomNeeded ? memory : tmpdir()
}

/** An empty folder that only its owner may enter, removed when the scope closes. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(parent(), "tidegate-"))),
  // A server that was killed may write its last while the folder goes.
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }))
)
