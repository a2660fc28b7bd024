/**
 * CPU time and memory of a process and all its descendants, read from /proc (Linux only).
 */
import { readdirSync, readFileSync } from "node:fs"

/** CPU in seconds since the process tree was started; memory in bytes. */
export interface ProcessStats {
  /** User and system time of the live processes, and of all children that they have waited for. */
  readonly cpuSeconds: number
  /** The part that does not belong to the root process: for a gateway, its sandbox. */
  readonly childSeconds: number
  /** Resident memory now: the private memory of each process, plus the largest shared mapping once. */
  readonly residentBytes: number
  /** The maximum resident memory of the root process so far. */
  readonly peakBytes: number
}

/** Clock ticks per second: the kernel always reports times to programs in this unit. */
const TICKS = 100

interface Process {
  readonly pid: number
  readonly parent: number
  readonly ticks: number
  /** The part of them that belongs to children that it has waited for. */
  readonly waitedTicks: number
}

/** The needed fields of a /proc/pid/stat line. The command name may contain spaces and parentheses. */
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
    // The process ended between the listing and the read. From then on its time is part of its parent's.
    return ""
  }
}

/** A field of /proc/pid/status in kB, returned in bytes; 0: it is missing. */
export const parseStatus = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024

/** The processes of the tree below `root`, including `root`. */
export const treeOf = (root: number): ReadonlyArray<Process> => {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readIfThere(`/proc/${name}/stat`))
    .filter((line) => line !== "")
    .map(parseStat)
  const tree = new Set([root])
  // After ids have wrapped, a child can have a lower id than its parent: repeat until nothing is added.
  for (let size = 0; size !== tree.size;) {
    size = tree.size
    for (const { pid, parent } of processes) if (tree.has(parent)) tree.add(pid)
  }
  return processes.filter(({ pid }) => tree.has(pid))
}

/** Reads the tree below `root`, including `root`. */
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

/**
 * The memory of a process tree in bytes, with shared memory divided among the processes: that of the root, and that of its
 * children.
 */
export interface ProportionalMemory {
  readonly root: number
  readonly children: number
}

/** Reads the memory of several trees together. This stops the processes for a moment, so do not read during a measurement. */
export const proportionalMemory = (roots: ReadonlyArray<number>): ProportionalMemory => {
  const sum = { root: 0, children: 0 }
  for (const root of roots) {
    for (const { pid } of treeOf(root)) {
      sum[pid === root ? "root" : "children"] += parseStatus(readIfThere(`/proc/${pid}/smaps_rollup`), "Pss")
    }
  }
  return sum
}

/** The sum of several trees. Memory that they share counts once for each of them. */
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
 * The seconds that all CPUs together have been in use since boot, from the text of /proc/stat: user, nice, system, interrupts,
 * and time that the host gave to other machines.
 */
export const busySeconds = (text: string): number => {
  const fields = text.slice(0, text.indexOf("\n")).trim().split(/\s+/)
  return [1, 2, 3, 6, 7, 8].reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS
}
