import { getHeapStatistics } from "node:v8"
import { memoryOfMachine } from "./processes/Count.ts"

/** The resources that the deliveries of one process may use. */
export interface DeliveryBounds {
  /** Concurrent deliveries of all destinations together. */
  readonly deliveries: number
  /** Bytes of the delivery queues' windows of all destinations together. */
  readonly windowBytes: number
  /** Connections to targets, including idle ones; above it idle ones are closed. */
  readonly connections: number
}

/** The resources of the process: file descriptors, and bytes of memory. */
interface Means {
  readonly files: number
  readonly memory: number
}

/** Bytes of a connection with its buffers, and of the captured answer (64 KiB) until it is recorded. */
const deliveryBytes = 128 * 1024
/** An eighth of the memory each for deliveries and for windows. The maximums are what one event loop can make use of. */
const memoryShare = 1 / 8
const maxWindowBytes = 160 * 1024 * 1024
const maxDeliveries = 8_192
/** With fewer, the gateway would be useless. If resources are missing then, single attempts fail with `INTERNAL_ERROR`. */
const minDeliveries = 64

/**
 * A quarter of the file descriptors is for deliveries, an eighth for connections that are kept for the next ones. The rest is for senders,
 * streams, databases and files.
 */
export const deliveryBounds = ({ files, memory }: Means): DeliveryBounds => {
  const bytes = memory * memoryShare
  const deliveries = Math.floor(Math.min(maxDeliveries, files / 4, bytes / deliveryBytes))
  return {
    deliveries: Math.max(minDeliveries, deliveries),
    windowBytes: Math.floor(Math.min(maxWindowBytes, bytes)),
    connections: Math.max(2 * minDeliveries, Math.floor((files * 3) / 8))
  }
}

/** An eighth of the heap each for caches and for workflow runs. Other work has its own limits and uses the rest. */
const cacheShare = 1 / 8
const runShare = 1 / 8

const ofHeap = (share: number): number => Math.floor(getHeapStatistics().heap_size_limit * share)

/** Bytes that all caches of the process may hold together. */
export const cacheBytes = (): number => ofHeap(cacheShare)

/** Bytes that the workflow runs in memory may hold together. */
export const runBytes = (): number => ofHeap(runShare)

/** Reads the resources at start; `sharing` processes have the memory together. Node has already raised the soft limit of descriptors to the hard limit. */
export const meansOfProcess = (sharing: number): Means => {
  Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | "unlimited" } } }
  const files = userLimits?.open_files?.soft
  return {
    files: typeof files === "number" ? files : Number.POSITIVE_INFINITY,
    memory: memoryOfMachine() / sharing
  }
}
