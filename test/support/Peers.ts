import { readdirSync, readFileSync, readlinkSync } from "node:fs"

/**
 * The local ports of a process's loopback connections to the port `to`. With them a server knows which connections come from that
 * process. Null: the system does not report them (only Linux does). This takes some milliseconds, so do not call it for every
 * connection.
 */
export const portsOf = (pid: number, to: number): ReadonlySet<number> | null => {
  if (process.platform !== "linux") return null
  const sockets = socketsOf(pid)
  const ports = new Set<number>()
  for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n")) {
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
    const [, local = "", remote = "", , , , , , , inode = ""] = line.trim().split(/\s+/)
    if (portIn(remote) === to && sockets.has(inode)) ports.add(portIn(local))
  }
  return ports
}

/** `0100007F:1F90`: the address and the port, in hexadecimal digits. */
const portIn = (address: string): number => Number.parseInt(address.slice(address.indexOf(":") + 1), 16)

const socketsOf = (pid: number): ReadonlySet<string> => {
  const inodes = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1]
    if (inode !== undefined) inodes.add(inode)
  }
  return inodes
}

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path)
  } catch {
    // Closed meanwhile.
    return ""
  }
}
