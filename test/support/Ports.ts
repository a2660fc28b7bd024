import { randomInt } from "node:crypto"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Has a file for each port in use by a test: the file's name is the port, its content is the id of the test's process. */
const folder = join(tmpdir(), "tidegate-test-ports")

const given = new Set<string>()
process.once("exit", () => {
  for (const file of given) rmSync(file, { force: true })
})

/**
 * A free loopback port for a server that starts later or starts again. It is below the range that the system assigns to clients
 * and to servers that ask for any port. No other test process is given the same port: two processes could both find it free
 * before one of their servers listens, and then the other server could not start.
 */
export const freePort = async (): Promise<number> => {
  mkdirSync(folder, { recursive: true })
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const file = join(folder, String(port))
    if (!reserve(file)) continue
    given.add(file)
    if (await isFree(port)) return port
  }
}

/** False if a process that runs has reserved it. */
const reserve = (file: string): boolean => {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" })
    return true
  } catch {
    // A process that was killed leaves its files. This port is free from the next attempt on.
    if (!runs(Number(contentOf(file)))) rmSync(file, { force: true })
    return false
  }
}

const contentOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

const runs = (pid: number): boolean => {
  // The file is empty between its creation and its first write.
  if (!(pid > 0)) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })
