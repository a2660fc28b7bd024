/**
 * Where the memory of the product is, by kind of process, read from /proc (Linux only). Reading walks the pages of each process and holds it
 * up for a moment: not while anything is measured.
 */
import { parseStatus, readIfThere, treeOf } from "./ProcessStats.ts"

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

const isSandbox = (pid: number): boolean => readIfThere(`/proc/${pid}/cmdline`).includes("/sandbox/src/child/")

/** `gateways` and `postgres`: the processes that were started; what they have started is found. */
export const processMemory = (gateways: ReadonlyArray<number>, postgres: number): ProcessMemory => {
  const found = { gateway: 0, sandbox: 0, sessions: 0, shared: 0, sandboxes: 0, backends: 0 }
  for (const { pid } of gateways.flatMap(treeOf)) {
    const kind = isSandbox(pid) ? "sandbox" : "gateway"
    found[kind] += parseStatus(readIfThere(`/proc/${pid}/smaps_rollup`), "Pss")
    if (kind === "sandbox") found.sandboxes++
  }
  for (const { pid } of treeOf(postgres)) {
    const text = readIfThere(`/proc/${pid}/smaps_rollup`)
    const own = parseStatus(text, "Pss_Anon")
    found.sessions += own
    found.shared += parseStatus(text, "Pss") - own
    found.backends++
  }
  return { ...found, all: found.gateway + found.sandbox + found.sessions + found.shared }
}
