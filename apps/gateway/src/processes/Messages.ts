import type { AddressInfo } from "node:net"

/** An address at which the supervisor listens for its processes. */
export interface Listen {
  readonly host: string
  readonly port: number
}

/** A system error without its stack, in the form in which it is sent to the process. */
export interface ListenFault {
  readonly code: string
  readonly syscall: string
  readonly message: string
  readonly address: string
  readonly port: number
}

/** Messages of a process to its supervisor. Messages keep their order, including those that carry a connection. */
export type ToSupervisor =
  | { readonly kind: "listen"; readonly at: Listen }
  /** Asks for no further connections of this address. The supervisor answers `stopped` after the last one. */
  | { readonly kind: "stop"; readonly at: Listen }
  | { readonly kind: "ready"; readonly welcome: string }
  /** Asks for the metrics of all processes as one text. */
  | { readonly kind: "gather"; readonly id: number }
  | { readonly kind: "metrics"; readonly id: number; readonly text: string }
  /** The answer to `asked`. */
  | { readonly kind: "alive" }

/** What the supervisor tells a process. */
export type ToProcess =
  | { readonly kind: "listening"; readonly at: Listen; readonly address: AddressInfo }
  | { readonly kind: "refused"; readonly at: Listen; readonly fault: ListenFault }
  | { readonly kind: "stopped"; readonly at: Listen }
  /** Comes with a socket. */
  | { readonly kind: "connection"; readonly at: Listen }
  | { readonly kind: "metrics"; readonly id: number }
  | { readonly kind: "gathered"; readonly id: number; readonly text: string }
  /** Asks for a sign of life. */
  | { readonly kind: "asked" }

export const keyOf = ({ host, port }: Listen): string => `${host} ${port}`
