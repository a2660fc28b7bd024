import { availableParallelism, totalmem } from "node:os"

/** With more processes than this, each would hold one or two of the 64 shards, and few would have work. */
const most = 32
/** `auto` starts at most this many: the embedded PostgreSQL accepts 200 sessions, which are enough for six processes. */
const maxAutomatic = 6
const gigabyte = 1024 ** 3

interface Machine {
  readonly cores: number
  /** Bytes that all processes together may use. */
  readonly memory: number
}

/** Bytes of memory that this machine or container allows. */
export const memoryOfMachine = (): number => {
  const constrained = process.constrainedMemory()
  // Without a limit the value is zero, or larger than the machine's memory.
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

const thisMachine = (): Machine => ({ cores: availableParallelism(), memory: memoryOfMachine() })

/**
 * The number of processes that `TIDEGATE_PROCESSES` means, or the sentence that refuses it. `auto` is half of the cores, because PostgreSQL
 * takes as much CPU for an event as the gateway does, and at most one process for each gigabyte of memory.
 */
export const countOf = (given: string | undefined, { cores, memory }: Machine = thisMachine()): number | string => {
  // As for every setting, an empty value means that it is not set.
  if (given === undefined || given === "") return 1
  if (given === "auto") return Math.max(1, Math.min(maxAutomatic, Math.floor(cores / 2), Math.floor(memory / gigabyte)))
  const count = /^[1-9]\d?$/.test(given) ? Number(given) : Number.NaN
  return count <= most ? count : `TIDEGATE_PROCESSES must be auto, or a whole number from 1 to ${most}`
}
