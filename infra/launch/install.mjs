import { mkdirSync, readFileSync, renameSync, rmdirSync, statSync, utimesSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { leave, run } from "./run.mjs"

/**
 * Installs the locked dependencies if they are missing: those for running, or with `development` all of them. An install for
 * development also serves for running. If several launches start at the same time, one installs and the others wait.
 */
export async function ensureInstalled(root, { development }) {
  if (isInstalled(root, development)) return
  const { code, output, signal } = await withLock(join(root, ".installing"), () =>
    isInstalled(root, development) ? { code: 0, signal: null } : install(root, development)
  )
  if (code === 0) return
  console.error(`${output}\nThe dependencies could not be installed.`)
  leave({ code, signal })
}

/**
 * Compares the lock file with npm's own record of its last complete install. npm writes this record for every install, and
 * removes it when an install begins.
 */
function isInstalled(root, development) {
  const wanted = packagesOf(join(root, "package-lock.json"))
  const present = packagesOf(join(root, "node_modules", ".package-lock.json"))
  return Object.entries(wanted).every(([path, entry]) => {
    if (!path.includes("node_modules/") || (entry.dev && !development)) return true
    const installed = present[path]
    if (installed === undefined) return isDispensable(entry)
    return entry.link
      ? installed.resolved === entry.resolved
      : installed.version === entry.version && installed.integrity === entry.integrity
  })
}

/** Optional packages may be missing, except those for this platform: they contain Node and PostgreSQL. */
function isDispensable({ cpu, devOptional, libc, optional, os }) {
  if (!optional && !devOptional) return false
  return !os?.includes(process.platform) || !cpu?.includes(process.arch) || libc !== undefined
}

function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, "utf8")).packages
  } catch (error) {
    if (error.code === "ENOENT") return {}
    throw error
  }
}

function install(root, development) {
  console.error("Installing dependencies ...")
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--include=optional"]
  const scope = development ? "--include=dev" : "--omit=dev"
  const [program, ...args] = [...npm(), "ci", ...flags, scope]
  return run(program, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] })
}

/** The npm that started this process, which belongs to the current Node; otherwise the npm on the path. */
function npm() {
  const path = process.env.npm_execpath
  return path !== undefined && basename(path) === "npm-cli.js" ? [process.execPath, path] : ["npm"]
}

const renewMillis = 1_000
const staleMillis = 10_000

/**
 * Runs `body` while this process holds the lock, so no other process that uses the lock runs at the same time. The lock is an
 * empty folder, which its owner renews. A lock that was not renewed for 10 seconds belongs to a process that was killed.
 */
async function withLock(path, body) {
  let announced = false
  while (!tryLock(path)) {
    if (!announced) console.error("Waiting for the dependencies another process is installing ...")
    announced = true
    await sleep(200)
  }
  const renewal = setInterval(() => utimesSync(path, new Date(), new Date()), renewMillis)
  try {
    return await body()
  } finally {
    clearInterval(renewal)
    rmdirSync(path)
  }
}

function tryLock(path) {
  try {
    mkdirSync(path)
    return true
  } catch (error) {
    if (error.code !== "EEXIST") throw error
  }
  if (isStale(path)) breakLock(path)
  return false
}

/**
 * Removes the lock by a rename, because only one of several processes can succeed with it. The rename is undone if the lock turns
 * out to be a new one.
 */
function breakLock(path) {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (isStale(aside)) rmdirSync(aside)
    else renameSync(aside, path)
  } catch (error) {
    if (error.code !== "ENOENT") throw error
  }
}

function isStale(path) {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && Date.now() - found.mtimeMs > staleMillis
}
