/**
 * CPU time and memory of a process and all its descendants, read from /proc (Linux only).
 */
import { readdirSync, readFileSync } from "node:fs"

/** CPU in seconds since the tree was started; memory in bytes. */
export interface ProcessStats {
  /** User and system time of the live processes and of all children they have waited for. */
  readonly cpuSeconds: number
  /** The part of it that is not the root's own: of a gateway, its sandbox. */
  readonly childSeconds: number
  /** Resident memory now: what each process has of its own, plus the largest shared mapping once. */
  readonly residentBytes: number
  /** The root process's highest resident memory so far. */
  readonly peakBytes: number
}

/** Clock ticks per second; the kernel reports times to user space in this fixed unit. */
const TICKS = 100

interface Process {
  readonly pid: number
  readonly parent: number
  readonly ticks: number
  /** The part of them that belongs to children it has waited for. */
  readonly waitedTicks: number
}

/** The fields of one /proc/pid/stat line that count; the command name may itself hold spaces and parentheses. */
export const parseStat = (line: string): Process => {
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ")
  const sum = (...places: ReadonlyArray<number>) => places.reduce((sum, at) => sum + Number(fields[at]), 0)
  const waitedTicks = sum(13, 14)
  return { pid: Number.parseInt(line, 10), parent: Number(fields[1]), ticks: sum(11, 12) + waitedTicks, waitedTicks }
}

export const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    // The process ended between the listing and the reading; its time is in its parent's from then on.
    return ""
  }
}

/** A kB figure of /proc/pid/status in bytes, 0 when it is not there. */
export const parseStatus = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024

/** The processes of the tree below `root`, itself included. */
export const treeOf = (root: number): ReadonlyArray<Process> => {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readIfThere(`/proc/${name}/stat`))
    .filter((line) => line !== "")
    .map(parseStat)
  const tree = new Set([root])
  // A child can have a lower id than its parent once ids have wrapped: repeat until nothing is added.
  for (let size = 0; size !== tree.size;) {
    size = tree.size
    for (const { pid, parent } of processes) if (tree.has(parent)) tree.add(pid)
  }
  return processes.filter(({ pid }) => tree.has(pid))
}

/** Reads the tree below `root`, itself included. */
export const processStats = (root: number): ProcessStats => {
  let ticks = 0
  let childTicks = 0
  let own = 0
  let shared = 0
  for (const process of treeOf(root)) {
    const status = readIfThere(`/proc/${process.pid}/status`)
    ticks += process.ticks
    childTicks += process.pid === root ? process.waitedTicks : process.ticks
    own += parseStatus(status, "RssAnon") + parseStatus(status, "RssFile")
    shared = Math.max(shared, parseStatus(status, "RssShmem"))
  }
  return {
    cpuSeconds: ticks / TICKS,
    childSeconds: childTicks / TICKS,
    residentBytes: own + shared,
    peakBytes: parseStatus(readIfThere(`/proc/${root}/status`), "VmHWM")
  }
}

/** Memory of a tree in bytes, with what several processes share divided among them: the root's, and its children's. */
export interface ProportionalMemory {
  readonly root: number
  readonly children: number
}

/** Reads the memory of some trees together. It costs the processes a moment, so not while they are measured. */
export const proportionalMemory = (roots: ReadonlyArray<number>): ProportionalMemory => {
  const sum = { root: 0, children: 0 }
  for (const root of roots) {
    for (const { pid } of treeOf(root)) {
      sum[pid === root ? "root" : "children"] += parseStatus(readIfThere(`/proc/${pid}/smaps_rollup`), "Pss")
    }
  }
  return sum
}

/** Several trees as one; what they share counts each time. */
export const together = (trees: ReadonlyArray<ProcessStats>): ProcessStats => {
  const sum = (figure: (tree: ProcessStats) => number): number => trees.reduce((all, tree) => all + figure(tree), 0)
  return {
    cpuSeconds: sum(({ cpuSeconds }) => cpuSeconds),
    childSeconds: sum(({ childSeconds }) => childSeconds),
    residentBytes: sum(({ residentBytes }) => residentBytes),
    peakBytes: sum(({ peakBytes }) => peakBytes)
  }
}

/**
 * Seconds all CPUs together have been taken since boot, by the text of /proc/stat: user, nice, system, interrupts, and what
 * the host gave to other machines.
 */
export const busySeconds = (text: string): number => {
  const fields = text.slice(0, text.indexOf("\n")).trim().split(/\s+/)
  return [1, 2, 3, 6, 7, 8].reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS
}
