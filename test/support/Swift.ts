import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { randomInt } from "node:crypto"
import { delimiter, join } from "node:path"
import { waitUntil } from "./Waiting.ts"

/** A real object store, if it is installed: OpenStack Swift with its S3 API (`swift/start.sh`). */

const programs = ["swift-proxy-server", "swift-ring-builder", "memcached"]
const isThere = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)))
const missing = programs.filter((program) => !isThere(program))

/** Why there is none; null: there is one. With `REQUIRE_SWIFT=1` a missing store is a failure. */
export const swiftIsMissing: string | null =
  missing.length === 0
    ? null
    : `${missing.join(", ")} not found: Debian's packages swift-proxy, swift-account, swift-container, swift-object and memcached`

export const swiftKey = { accessKeyId: "test:tester", secretAccessKey: "testing" }
export const swiftRegion = "us-east-1"

export const startSwift = async (folder: string) => {
  const port = randomInt(16_000, 19_990)
  const child: ChildProcess = spawn(join(import.meta.dirname, "swift/start.sh"), [folder, String(port)], {
    stdio: "ignore"
  })
  const origin = `http://127.0.0.1:${port}`
  await waitUntil("Swift answers", async () => {
    if (child.exitCode !== null) throw new Error("it has ended")
    return (await fetch(`${origin}/healthcheck`, { signal: AbortSignal.timeout(5_000) })).ok
  })
  return {
    origin,
    close: async () => {
      child.kill("SIGTERM")
      await waitUntil("Swift ends", () => child.exitCode !== null || child.signalCode !== null)
    }
  }
}
