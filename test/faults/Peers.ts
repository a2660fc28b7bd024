import { readdirSync, readFileSync, readlinkSync } from "node:fs"

/**
 * The process at the other end of a loopback connection to `localPort`, or null when it cannot be told: the connection is
 * gone, the process is none of `candidates`, or the system is not Linux.
 */
export const peerOf = (remotePort: number, localPort: number, candidates: Iterable<number>): number | null => {
  if (process.platform !== "linux") return null
  const inode = inodeOf(remotePort, localPort)
  if (inode === null) return null
  for (const pid of candidates) if (holds(pid, `socket:[${inode}]`)) return pid
  return null
}

const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0")

const inodeOf = (from: number, to: number): string | null => {
  for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n")) {
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
    const columns = line.trim().split(/\s+/)
    if (columns[1]?.endsWith(`:${hex(from)}`) === true && columns[2]?.endsWith(`:${hex(to)}`) === true) {
      return columns[9] ?? null
    }
  }
  return null
}

const holds = (pid: number, socket: string): boolean => {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === socket)
  } catch {
    // It has ended.
    return false
  }
}

const linkOf = (path: string): string | null => {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}
