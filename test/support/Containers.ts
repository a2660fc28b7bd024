import { execFile, spawnSync } from "node:child_process"
import { constants, copyFile, cp, mkdir, rm, symlink, writeFile } from "node:fs/promises"
import { existsSync, realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

/** What a program printed, and how it ended. */
export interface Ended {
  readonly code: number
  readonly said: string
  readonly complained: string
}

const runs = (program: string): boolean => spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined

/** Podman's usual one comes last: that of Debian 12 starts nothing where both versions of control groups are mounted. */
const runtime = ["runc", "crun"].find(runs)

/**
 * Why suites with containers do not run here. Null: they run. The reason is printed once. They run only if they are asked for, because they fetch
 * hundreds of packages and take minutes, and fail if no mirror of Debian can be reached.
 */
export const noContainers: string | null =
  process.env["TEST_IMAGE"] !== "yes"
    ? "TEST_IMAGE=yes asks for them"
    : process.platform !== "linux" || process.getuid?.() !== 0
      ? "only root of a Linux makes a root of Debian's packages"
      : runs("podman") && runtime !== undefined && runs("debootstrap")
        ? null
        : "podman, runc and debootstrap are not all installed"

if (noContainers !== null) process.stdout.write(`Suites with containers are skipped: ${noContainers}.\n`)

/** Containers may have fewer files and processes than this process: raising a limit needs a right that root of a sandbox lacks. */
const limits = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"]

/**
 * Images and containers in a folder of their own, made by Podman. No registry of images is needed: the two images on which the
 * product's image is based are made of Debian's packages, and of the Node and npm of this machine.
 */
export class Containers {
  readonly #folder: string
  readonly #storage: ReadonlyArray<string>
  readonly bases = { NODE_IMAGE: "localhost/node", BASE_IMAGE: "localhost/debian" } as const

  private constructor(folder: string) {
    this.#folder = folder
    const places = [
      "--root",
      join(folder, "storage"),
      "--runroot",
      join(folder, "run"),
      "--tmpdir",
      join(folder, "tmp")
    ]
    this.#storage = [...places, "--runtime", runtime ?? "runc"]
  }

  /** Works in an empty folder. Returns null, and prints the reason, if Debian's packages are not available. */
  static async open(folder: string): Promise<Containers | null> {
    const containers = new Containers(folder)
    const root = join(folder, "root")
    try {
      await run("debootstrap", ["--variant=minbase", "--include=ca-certificates", "bookworm", root], {
        maxBuffer: 2 ** 26,
        timeout: 600_000
      })
    } catch (error) {
      process.stdout.write(`Suites with containers are skipped: debootstrap failed (${String(error).slice(0, 200)}).\n`)
      return null
    }
    await containers.#makeBases(root)
    return containers
  }

  async #makeBases(root: string): Promise<void> {
    const { NODE_IMAGE, BASE_IMAGE } = this.bases
    await this.#fromFolder(BASE_IMAGE, "scratch", root)
    // Beside Debian, node:26 has these: Node with the library that it needs, and npm.
    const node = join(this.#folder, "node")
    const [programs, modules, libraries] = ["usr/local/bin", "usr/local/lib/node_modules", "usr/lib"].map((path) =>
      join(node, path)
    )
    for (const path of [programs!, modules!, libraries!]) await mkdir(path, { recursive: true })
    await copyFile(process.execPath, join(programs!, "node"))
    await cp(npmOfThisMachine(), join(modules!, "npm"), { recursive: true, mode: constants.COPYFILE_FICLONE })
    await symlink("../lib/node_modules/npm/bin/npm-cli.js", join(programs!, "npm"))
    const { stdout } = await run("ldd", [process.execPath])
    const libatomic = /libatomic\.so\.1 => (\S+)/.exec(stdout)?.[1]
    if (libatomic !== undefined) await copyFile(libatomic, join(libraries!, "libatomic.so.1"))
    // A registry may be behind a proxy whose authority this machine knows.
    const authorities = "/etc/ssl/certs/ca-certificates.crt"
    await mkdir(join(node, dirname(authorities)), { recursive: true })
    await copyFile(authorities, join(node, authorities))
    await this.#fromFolder(NODE_IMAGE, BASE_IMAGE, node, `ENV NODE_EXTRA_CA_CERTS=${authorities}\n`)
  }

  async #fromFolder(tag: string, base: string, folder: string, more = ""): Promise<void> {
    const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    await writeFile(`${folder}.file`, `FROM ${base}\nCOPY . /\nENV ${path}\n${more}`)
    await this.#must(["build", "--tag", tag, "--file", `${folder}.file`, folder])
    await rm(folder, { recursive: true, force: true })
  }

  /** Builds the folder's Dockerfile on images of this machine. Packages that npm has already are not fetched again. */
  async build(folder: string, tag: string): Promise<void> {
    const bases = Object.entries(this.bases).flatMap(([name, image]) => ["--build-arg", `${name}=${image}`])
    const { stdout } = await run("npm", ["config", "get", "cache"])
    const cache = [
      "--volume",
      `${stdout.trim()}:/npm:O`,
      "--env",
      "npm_config_cache=/npm",
      "--env",
      "npm_config_prefer_offline=true"
    ]
    await this.#must(["build", "--isolation", "chroot", "--format", "docker", ...bases, ...cache, "--tag", tag, folder])
  }

  /** Starts a container that shares this machine's network. Its health is asked by the test, because a timer of it needs systemd. */
  async start(name: string, args: ReadonlyArray<string>): Promise<void> {
    const fixed = ["--detach", "--name", name, "--network", "host", "--health-interval", "disable", ...limits]
    await this.#must(["run", ...fixed, ...args])
  }

  /** A file of an image. */
  async read(image: string, path: string): Promise<string> {
    const { code, said, complained } = await this.podman(
      ["run", "--rm", "--network", "none", ...limits].concat("--entrypoint", "cat", image, path)
    )
    if (code !== 0) throw new Error(`${image} has no ${path}: ${complained}`)
    return said
  }

  /** Any other command of Podman. */
  podman(args: ReadonlyArray<string>): Promise<Ended> {
    return new Promise((resolve) => {
      execFile("podman", [...this.#storage, ...args], { maxBuffer: 2 ** 26 }, (error, said, complained) => {
        const code = error === null ? 0 : Number(error.code ?? -1)
        // Nothing but these lines comes from Podman without systemd when it does what it should.
        const lines = complained.split("\n").filter((line) => !line.includes("systemd connection"))
        resolve({ code, said, complained: lines.join("\n") })
      })
    })
  }

  async #must(args: ReadonlyArray<string>): Promise<void> {
    const { code, said, complained } = await this.podman(args)
    if (code !== 0) throw new Error(`podman ${args.join(" ")} ended with ${code}: ${(said + complained).slice(-2_000)}`)
  }

  /** Ends all containers. The folder can be removed afterwards. */
  async close(): Promise<void> {
    await this.podman(["rm", "--force", "--all", "--time", "0"])
    spawnSync("umount", ["--recursive", join(this.#folder, "storage/overlay")], { stdio: "ignore" })
  }
}

/** Its folder, wherever the program on the path comes from. */
const npmOfThisMachine = (): string => {
  const { stdout } = spawnSync("sh", ["-c", "command -v npm"], { encoding: "utf8" })
  const folder = join(dirname(realpathSync(stdout.trim())), "..")
  if (!existsSync(join(folder, "bin/npm-cli.js"))) throw new Error(`${folder} is not npm`)
  return folder
}
