import { mkdirSync, readFileSync, renameSync, rmdirSync, statSync, utimesSync } from "node:fs"
import { basename, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { leave, run } from "./run.mjs"

/**
 * Installs the locked dependencies unless they are there: those for running, or with `development` all of them. An install for
 * development also serves for running. Launches at the same time install once; the others wait.
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
 * Compares what npm wrote down about the last install that it completed (it does so wherever the install was started from, and
 * an install begins with removing it) with the lock file.
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

/** Optional packages may be missing, save those made for this very platform: Node and PostgreSQL come in these. */
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

/** The npm this was started by, which belongs to the Node this runs on; otherwise the one on the path. */
function npm() {
  const path = process.env.npm_execpath
  return path !== undefined && basename(path) === "npm-cli.js" ? [process.execPath, path] : ["npm"]
}

const renewMillis = 1_000
const staleMillis = 10_000

/**
 * Runs `body` alone among the processes that use the lock: an empty folder, renewed for as long as its maker lives. One that
 * has not been renewed for 10 seconds was left by a process that was killed.
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

/** By a rename, which only one of several processes succeeds in, and undone if the lock turns out to have been made anew. */
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
