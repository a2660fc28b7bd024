import { createHash } from "node:crypto"
import { globSync, statSync } from "node:fs"
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { waitUntil } from "./Waiting.ts"

/*
 * This version's gateway, its admin command and its command line as bundles, which start in half the processor time of their 1,700 modules. The
 * suites start some hundreds of processes. `npm start` makes the same bundle. `apps/gateway/test/Start.test.ts` (each start that succeeds) and
 * `Admin.test.ts` start the sources; `apps/cli/test/process/{Loaded,Terminal}.test.ts` start those of the command line.
 */

const root = join(import.meta.dirname, "../..")
const cache = join(root, "node_modules/.cache/gateway")

/** Their sources. */
const programs = {
  main: "apps/gateway/src/main.ts",
  start: "apps/gateway/src/start.ts",
  admin: "apps/gateway/src/admin.ts",
  cli: "apps/cli/src/main.ts"
} as const
type Program = keyof typeof programs

/** Changes with every change of a source or of a dependency. */
const version = (): string => {
  const sources = globSync(
    ["packages/*/src/**/*.ts", "apps/{gateway,cli}/src/**/*.ts", "apps/gateway/bundle.mjs", "package-lock.json"],
    {
      cwd: root
    }
  )
  const states = sources.toSorted().map((file) => {
    const { mtimeMs, size } = statSync(join(root, file))
    return `${file} ${mtimeMs} ${size}`
  })
  return createHash("sha256")
    .update([...Object.values(programs), ...states].join("\n"))
    .digest("hex")
    .slice(0, 16)
}

/** Makes it in a folder of this process, which takes its place when it is whole: others never run a program that is half written. */
const build = async (folder: string): Promise<void> => {
  const { bundle } = (await import(new URL("../../apps/gateway/bundle.mjs", import.meta.url).href)) as {
    readonly bundle: (options: {
      readonly input: object
      readonly output: { readonly dir: string }
    }) => Promise<unknown>
  }
  const own = `${folder}.${process.pid}`
  await bundle({ input: programs, output: { dir: own } })
  await writeFile(join(own, "done"), "")
  try {
    await rename(own, folder)
  } catch (error) {
    // Another process was first.
    await rm(own, { recursive: true, force: true })
    if (!(await exists(join(folder, "done")))) throw error
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false
  )

/** Returns the folder. One process makes it, and the others wait. Bundles of earlier versions are removed after a day. */
const make = async (): Promise<string> => {
  const folder = join(cache, version())
  const isDone = () => exists(join(folder, "done"))
  if (await isDone()) return folder
  await mkdir(cache, { recursive: true })
  const lock = `${folder}.lock`
  await waitUntil(
    "the gateway is bundled",
    async () => {
      if (await isDone()) return true
      // A process that has the lock and has died does not end the others.
      if (await exists(lock)) {
        const holder = Number(await readFile(lock, "utf8").catch(() => "0"))
        if (holder > 0 && isRunning(holder)) return false
        await rm(lock, { force: true })
      }
      const isMine = await writeFile(lock, String(process.pid), { flag: "wx" }).then(
        () => true,
        () => false
      )
      if (!isMine) return false
      try {
        await removeOld()
        await build(folder)
      } finally {
        await rm(lock, { force: true })
      }
      return true
    },
    { everyMs: 100 }
  )
  return folder
}

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const removeOld = async (): Promise<void> => {
  for (const name of await readdir(cache)) {
    const path = join(cache, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > 86_400_000) await rm(path, { recursive: true, force: true })
  }
}

let made: Promise<string> | null = null

/** The path of a bundled program. */
export const bundled = async (program: Program): Promise<string> => join(await (made ??= make()), `${program}.mjs`)
