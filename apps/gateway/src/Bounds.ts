import { totalmem } from "node:os"
import { getHeapStatistics } from "node:v8"

/** What the deliveries of one process may take of it. */
export interface DeliveryBounds {
  /** On the wire at once, of all destinations together. */
  readonly deliveries: number
  /** Bytes that the windows of all destinations hold. */
  readonly windowBytes: number
  /** Connections to targets, idle ones included, beyond which idle ones are closed. */
  readonly connections: number
}

/** What the process has: file descriptors, and bytes of memory. */
interface Means {
  readonly files: number
  readonly memory: number
}

/** A connection with its buffers, and what is kept of an answer (64 KiB) until it is recorded. */
const deliveryBytes = 128 * 1024
/** An eighth of the memory for each of the two; as many windows and deliveries as one event loop makes something of. */
const memoryShare = 1 / 8
const maxWindowBytes = 160 * 1024 * 1024
const maxDeliveries = 8_192
/** Fewer make no gateway: what is missing then shows as `INTERNAL_ERROR` of single attempts. */
const minDeliveries = 64

/** A quarter of the descriptors are for deliveries, an eighth for connections that are kept for the next ones; the rest is for senders,
 * streams, databases and files. */
export const deliveryBounds = ({ files, memory }: Means): DeliveryBounds => {
  const bytes = memory * memoryShare
  const deliveries = Math.floor(Math.min(maxDeliveries, files / 4, bytes / deliveryBytes))
  return {
    deliveries: Math.max(minDeliveries, deliveries),
    windowBytes: Math.floor(Math.min(maxWindowBytes, bytes)),
    connections: Math.max(2 * minDeliveries, Math.floor((files * 3) / 8))
  }
}

/** An eighth of the heap for each of the two: what else is under way has bounds of its own, and may fill the rest. */
const cacheShare = 1 / 8
const runShare = 1 / 8

const ofHeap = (share: number): number => Math.floor(getHeapStatistics().heap_size_limit * share)

/** What all caches of the process may hold together, in bytes. */
export const cacheBytes = (): number => ofHeap(cacheShare)

/** What the runs of workflows that the process has in hand may hold together, in bytes. */
export const runBytes = (): number => ofHeap(runShare)

/** Read at start. Node has raised the soft limit of descriptors to the hard one by then. */
export const meansOfProcess = (): Means => {
  Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | "unlimited" } } }
  const files = userLimits?.open_files?.soft
  const constrained = process.constrainedMemory()
  return {
    files: typeof files === "number" ? files : Number.POSITIVE_INFINITY,
    // Without a limit it is none, or more than there is.
    memory: constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  }
}
