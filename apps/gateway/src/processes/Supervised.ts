import type { ListenOptions, Socket } from "node:net"
import type { ConnectionSource } from "@tidegate/ingress/wire/HandedOver"
import { keyOf, type Listen, type ToProcess, type ToSupervisor } from "./Messages.ts"

/** The functions that the supervisor offers to each of several processes. */
export interface Supervisor {
  /** The number of processes that the supervisor starts. */
  readonly processes: number
  /** A source of connections for one server. */
  readonly connections: () => ConnectionSource
  /** Tells that this process can work, with the text that a start shows to the user. */
  readonly ready: (welcome: string) => void
  /** The metrics of all processes as one text. */
  readonly expositions: () => Promise<string>
  /** Sets how this process makes the text of its own metrics. */
  readonly exposeBy: (own: () => Promise<string>) => void
}

interface Waiting {
  readonly take: (socket: Socket) => void
  readonly opened: (message: ToProcess) => void
  stopped: () => void
}

const make = (): Supervisor => {
  const tell = (message: ToSupervisor): void => {
    if (process.connected) process.send!(message)
  }
  const servers = new Map<string, Waiting>()
  const gathering = new Map<number, (text: string) => void>()
  let last = 0
  let own: () => Promise<string> = () => Promise.resolve("")

  process.on("message", (message: ToProcess, socket: Socket | undefined) => {
    switch (message.kind) {
      case "connection":
        // If the client has left, there is no socket.
        if (socket) servers.get(keyOf(message.at))?.take(socket)
        break
      case "listening":
      case "refused":
        servers.get(keyOf(message.at))?.opened(message)
        break
      case "stopped":
        servers.get(keyOf(message.at))?.stopped()
        break
      case "metrics":
        own().then(
          (text) => tell({ kind: "metrics", id: message.id, text }),
          () => tell({ kind: "metrics", id: message.id, text: "" })
        )
        break
      case "gathered":
        gathering.get(message.id)?.(message.text)
        gathering.delete(message.id)
        break
      case "asked":
        tell({ kind: "alive" })
    }
  })
  // The supervisor was killed, so nobody would send connections or replace this process. It ends.
  process.once("disconnect", () => void process.emit("SIGTERM", "SIGTERM"))

  const connections = (): ConnectionSource => {
    let at: Listen | null = null
    return {
      open: ({ host = "127.0.0.1", port = 0 }: ListenOptions, take) =>
        new Promise((resolve, reject) => {
          at = { host, port }
          const opened = (message: ToProcess): void => {
            if (message.kind === "listening") resolve(message.address)
            else if (message.kind === "refused") reject(Object.assign(new Error(message.fault.message), message.fault))
          }
          servers.set(keyOf(at), { take, opened, stopped: () => {} })
          tell({ kind: "listen", at })
        }),
      stop: () =>
        new Promise<void>((resolve) => {
          const server = at === null ? undefined : servers.get(keyOf(at))
          if (server === undefined || !process.connected) return resolve()
          server.stopped = resolve
          process.once("disconnect", resolve)
          tell({ kind: "stop", at: at! })
        })
    }
  }

  return {
    processes: Number(process.env["TIDEGATE_PROCESSES"]),
    connections,
    ready: (welcome) => tell({ kind: "ready", welcome }),
    expositions: () =>
      new Promise((resolve) => {
        const id = ++last
        gathering.set(id, resolve)
        // Without a supervisor, only the metrics of this process are known.
        if (process.connected) tell({ kind: "gather", id })
        else own().then(resolve, () => resolve(""))
      }),
    exposeBy: (how) => void (own = how)
  }
}

/** The variable by which the supervisor gives a process its number. */
export const processVariable = "TIDEGATE_PROCESS"

/** Null: this process is the only one of its start. */
export const supervisor: Supervisor | null =
  process.send !== undefined && process.env[processVariable] !== undefined ? make() : null
