import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { connect } from "node:net"
import { delimiter, join } from "node:path"
import { unpack } from "./DebianPackages.ts"
import { freePort } from "./Ports.ts"
import { waitUntil } from "./Waiting.ts"

const cache = join(import.meta.dirname, "../../node_modules/.cache/redis")

/** A program and the folder of its libraries. */
interface Program {
  readonly file: string
  readonly libraries: string | null
}

const onPath = (): Program | null => {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/bin", "/usr/local/bin"]
  const file = folders.map((folder) => join(folder, "redis-server")).find((path) => existsSync(path))
  return file === undefined ? null : { file, libraries: null }
}

/** The packages of Debian's and Ubuntu's server besides the C library. No release has all of them. */
const parts = [
  "redis-server",
  "redis-tools",
  "libhiredis0.14",
  "libhiredis1.1.0",
  "libjemalloc2",
  "liblua5.1-0",
  "liblzf1",
  "libatomic1",
  "lua-bitop",
  "lua-cjson"
]

/** The server from the system's packages, unpacked into a folder, because that needs no root. */
const fetched = async (): Promise<Program | null> => {
  const found = async (): Promise<Program | null> => {
    const paths = await readdir(cache, { recursive: true }).catch(() => [])
    // One of the two programs may be a link to the other, with an absolute path that does not exist here. So the one that exists
    // is used.
    const file = paths.find((path) => /bin\/redis-(server|check-rdb)$/.test(path) && existsSync(join(cache, path)))
    const library = paths.find((path) => /liblua5\.1\.so/.test(path))
    return file === undefined
      ? null
      : { file: join(cache, file), libraries: library === undefined ? null : join(cache, library, "..") }
  }
  const before = await found()
  if (before !== null) return before
  await unpack(parts, cache)
  return found()
}

const program = onPath() ?? (process.env["REDIS_URL"] === undefined ? await fetched() : null)

/** Why suites with Redis do not run here; null: they do. The reason is printed once. */
export const noRedis: string | null =
  program === null && process.env["REDIS_URL"] === undefined
    ? "no redis-server on the PATH, no REDIS_URL, and none could be fetched by apt-get download"
    : null
if (noRedis !== null) {
  if (process.env["REQUIRE_REDIS"] === "1") throw new Error(`REQUIRE_REDIS=1, and ${noRedis}`)
  process.stderr.write(`skipped what needs Redis: ${noRedis}\n`)
}
/** The same for suites that stop and freeze the server. */
export const noOwnRedis = program === null

const password = "a password of the tests"

/** A server of the suite's own, or that of `REDIS_URL`, which only suites that do not stop it use. */
export class Redis {
  readonly url: string
  private readonly port: number
  private readonly flags: ReadonlyArray<string>
  private child: ChildProcess | null = null

  private constructor(url: string, port: number, flags: ReadonlyArray<string> = []) {
    this.url = url
    this.port = port
    this.flags = flags
  }

  /** `flags`: for a server of the suite's own, as `--appendonly yes`. */
  static async start(flags: ReadonlyArray<string> = []): Promise<Redis> {
    if (program === null) return new Redis(process.env["REDIS_URL"]!, 0)
    const port = await freePort()
    const redis = new Redis(`redis://:${encodeURIComponent(password)}@127.0.0.1:${port}/0`, port, flags)
    await redis.start()
    return redis
  }

  /** The process id of a server that runs. */
  get pid(): number {
    if (this.child?.pid === undefined) throw new Error("no Redis of our own runs")
    return this.child.pid
  }

  /** Starts the server after a stop, or lets it continue after a freeze. */
  async start(): Promise<void> {
    if (this.child !== null) return this.thaw()
    const { file, libraries } = program!
    const child = spawn(
      file,
      ["--port", String(this.port), "--bind", "127.0.0.1", "--save", "", "--requirepass", password, ...this.flags],
      {
        argv0: "redis-server",
        stdio: "ignore",
        env: { ...process.env, ...(libraries === null ? {} : { LD_LIBRARY_PATH: libraries }) }
      }
    )
    this.child = child
    process.once("exit", () => child.kill("SIGKILL"))
    await waitUntil("Redis listens", () => listens(this.port))
  }

  async stop(): Promise<void> {
    const child = this.child
    if (child === null) return
    this.child = null
    const ended = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGKILL")
    await ended
  }

  freeze(): void {
    this.child?.kill("SIGSTOP")
  }

  thaw(): void {
    this.child?.kill("SIGCONT")
  }

  /** The output of `redis-cli`, one line for each reply. */
  async ask(command: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, "127.0.0.1", () => socket.end(`AUTH "${password}"\r\n${command}\r\nQUIT\r\n`))
      let said = ""
      socket.on("data", (data) => (said += data.toString()))
      socket.on("error", reject).on("close", () => resolve(said))
    })
  }
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.destroy())
    socket.on("error", () => resolve(false)).on("connect", () => resolve(true))
  })
