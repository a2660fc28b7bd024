/**
 * The memory of the product by kind of process, from /proc (Linux only). Reading walks the pages of each process and stops it for
 * a moment, so do not read during a measurement.
 */
import { parseStatus, readIfThere, treeOf } from "./ProcessStats.ts"

/** Bytes. Memory that several processes share is divided among them, so that sums are correct. */
export interface ProcessMemory {
  readonly gateway: number
  readonly sandbox: number
  /** The private memory of PostgreSQL's processes: session caches, memory of statements, their copies of the program's data. */
  readonly sessions: number
  /** Their shared memory: the used part of the buffers, and the program. */
  readonly shared: number
  readonly all: number
  /** Numbers of processes. */
  readonly sandboxes: number
  readonly backends: number
}

const isSandbox = (pid: number): boolean => readIfThere(`/proc/${pid}/cmdline`).includes("/sandbox/src/child/")

/** `gateways` and `postgres`: the ids of the started processes. Their child processes are found. */
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
