/**
 * Where the memory of the product is, by kind of process, read from /proc (Linux only). Reading walks the pages of each process and holds it
 * up for a moment: not while anything is measured.
 */
import { readdirSync, readFileSync } from "node:fs"
import { parseStat, parseStatus } from "./ProcessStats.ts"

/** Bytes. What several processes share is divided among them, so that sums are true. */
export interface ProcessMemory {
  readonly gateway: number
  readonly sandbox: number
  /** What each process of PostgreSQL has of its own: caches of its session, memory of its statements, its copy of the program's data. */
  readonly sessions: number
  /** What they share: the buffers, as far as they have been used, and the program. */
  readonly shared: number
  readonly all: number
  /** Numbers of processes. */
  readonly sandboxes: number
  readonly backends: number
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    // It ended since the listing.
    return ""
  }
}

/** The processes below `root`, itself included. */
const treeOf = (root: number): ReadonlySet<number> => {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => textOf(`/proc/${name}/stat`))
    .filter((line) => line !== "")
    .map(parseStat)
  const tree = new Set([root])
  for (let size = 0; size !== tree.size;) {
    size = tree.size
    for (const { pid, parent } of processes) if (tree.has(parent)) tree.add(pid)
  }
  return tree
}

const isSandbox = (pid: number): boolean => textOf(`/proc/${pid}/cmdline`).includes("/sandbox/src/child/")

/** `gateways` and `postgres`: the processes that were started; what they have started is found. */
export const processMemory = (gateways: ReadonlyArray<number>, postgres: number): ProcessMemory => {
  const found = { gateway: 0, sandbox: 0, sessions: 0, shared: 0, sandboxes: 0, backends: 0 }
  for (const pid of gateways.flatMap((root) => [...treeOf(root)])) {
    const kind = isSandbox(pid) ? "sandbox" : "gateway"
    found[kind] += parseStatus(textOf(`/proc/${pid}/smaps_rollup`), "Pss")
    if (kind === "sandbox") found.sandboxes++
  }
  for (const pid of treeOf(postgres)) {
    const text = textOf(`/proc/${pid}/smaps_rollup`)
    const own = parseStatus(text, "Pss_Anon")
    found.sessions += own
    found.shared += parseStatus(text, "Pss") - own
    found.backends++
  }
  return { ...found, all: found.gateway + found.sandbox + found.sessions + found.shared }
}
