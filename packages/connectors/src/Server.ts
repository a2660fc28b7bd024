import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { needed, setting, text } from "./Settings.ts"

/** The settings of types that keep a connection to a server of the user: a database or a message broker. */

const address = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/
const notAddress = "must be a host name or an IP address, without a port"
const notPort = "must be a whole number from 1 to 65535"
const notSeconds = "must be a whole number from 1 to 30"

export const isAddress = (host: string): boolean => address.test(host)

export const wholeNumber = (minimum: number, maximum: number, message: string) =>
  Schema.Number.annotate({ message }).check(
    Schema.isInt({ message }).abort(),
    Schema.isBetween({ minimum, maximum }, { message })
  )

/** `port`: the default. `example`: a host name for the API document. */
export const serverAddress = (port: number, example: string) => ({
  host: needed(
    text
      .annotate({ description: "Host name or IP address of the server", examples: [example] })
      .check(Schema.isPattern(address, { message: notAddress })),
    "the host name or address of the server"
  ),
  port: setting(wholeNumber(1, 65_535, notPort), port, notPort)
})

export const serverConnection = {
  tls_mode: setting(
    OneOf(["verify-full", "disable"]).annotate({
      description: "verify-full: encrypted, the server's certificate verified against host; disable: in the clear"
    }),
    "verify-full"
  ),
  connect_timeout: setting(
    wholeNumber(1, 30, notSeconds).annotate({ description: "Seconds to connect and sign in" }),
    10,
    notSeconds
  )
}

interface Address {
  readonly host: string
  readonly port: number
  readonly tls_mode: string
}

/** How to reach a server and sign in. */
export interface ServerSignIn {
  readonly host: string
  readonly port: number
  /** Empty: there is no user name, or the gateway does not sign in. */
  readonly username: string
  readonly password: string
  /** True: TLS, verified against the host; false: plain text. */
  readonly tls: boolean
  /** Seconds to connect and sign in. */
  readonly connectTimeout: number
}

/** A setting of the authentication; empty: it is not given. */
export const textOf = (setting: unknown): string => (typeof setting === "string" ? setting : "")

export const serverSignIn = (
  { connect_timeout, host, port, tls_mode }: Address & { readonly connect_timeout: number },
  { password, username }: { readonly [setting: string]: unknown }
): ServerSignIn => ({
  host,
  port,
  username: textOf(username),
  password: textOf(password),
  tls: tls_mode === "verify-full",
  connectTimeout: connect_timeout
})

/** The address to which the settings send the destination's credentials. */
export const leadsToServer = ({ host, port, tls_mode }: Address): string =>
  `${host}:${port}${tls_mode === "disable" ? " in the clear" : ""}`

/** The settings that a workflow step cannot change, because credentials go there. */
export const serverPlace = ["host", "port", "tls_mode"] as const

/** Host and port in a URL. */
export const inUrl = ({ host, port }: Pick<Address, "host" | "port">): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`
