import { Cause, Predicate, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import type { Settings } from "./Settings.ts"
import type { TelemetrySettings } from "./TelemetrySettings.ts"

/*
 * Why a process could not start, as a sentence that names the setting and what to do. Unknown errors are not converted:
 * they keep their stack, because they have to be fixed in the code.
 */

/** What is known about a process that is starting, so far. */
export interface Starting {
  settings: Settings | null
  telemetry: TelemetrySettings | null
}

const textOf = (value: unknown, name: string): string => {
  const found = Predicate.hasProperty(value, name) ? value[name] : undefined
  return typeof found === "string" || typeof found === "number" ? String(found) : ""
}

/** The system error within an error, at any depth: the one with a code. */
const withCode = (error: unknown, depth = 0): unknown => {
  if (textOf(error, "code") !== "") return error
  // Several addresses of one name were tried.
  if (error instanceof AggregateError) return error.errors[0]
  const inner = Predicate.hasProperty(error, "cause") ? error.cause : undefined
  const reason = Predicate.hasProperty(error, "reason") ? error.reason : undefined
  if (depth > 5) return undefined
  return (
    (reason === undefined ? undefined : withCode(reason, depth + 1)) ??
    (inner === undefined ? undefined : withCode(inner, depth + 1))
  )
}

/** The settings that define the listener at a port. */
const listenerAt = (
  port: string,
  { settings, telemetry }: Starting
): { readonly host: string; readonly port: string } => {
  if (port === String(settings?.port)) return { host: "HOST", port: "PORT" }
  if (port === String(telemetry?.metricsServer?.port))
    return { host: "TIDEGATE_METRICS_HOST", port: "TIDEGATE_METRICS_PORT" }
  return { host: "TIDEGATE_RUNNER_HOST", port: "TIDEGATE_RUNNER_PORT" }
}

const listening = (error: unknown, starting: Starting): string | null => {
  const address = textOf(error, "address")
  const port = textOf(error, "port")
  const setting = listenerAt(port, starting)
  const where = `${address.includes(":") ? `[${address}]` : address}:${port}`
  switch (textOf(error, "code")) {
    case "EADDRINUSE": {
      const again = setting.port === "PORT" ? ", perhaps a gateway that runs already" : ""
      return `${setting.port}: another process listens at ${where}${again}; end it, or set another ${setting.port}`
    }
    case "EACCES":
      return `${setting.port}: this user may not listen at ${where}; ports below 1024 are for privileged ones`
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EINVAL":
      return `${setting.host}: ${address === "" ? textOf(error, "hostname") : address} is no address of this machine`
    default:
      return null
  }
}

const isSqlError = (error: unknown): error is SqlError.SqlError => Predicate.isTagged(error, "SqlError")

/** The meaning of the server's error codes for the database URL. None of them contains the password. */
const refusals: Readonly<Record<string, string>> = {
  "28P01": "refuses the user or the password",
  "28000": "does not let this user in",
  "3D000": "has no database of this name",
  "42501": "gives this user too few rights: the database has to be its own",
  "25006": "only reads, as a standby does: name the primary server",
  "53100": "has no space left on its disk: make room there first",
  "53300": "has no connection left: raise its max_connections, or start fewer processes",
  "57P03": "is starting or stopping: try again in a moment"
}

/** Why the server's certificate is refused, by the code of the error. */
const ofCertificate = (code: string): string | null => {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "has a certificate for another name: use a name of the certificate in the URL"
  if (/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/.test(code)) return "has a certificate that is not valid now"
  return /SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF/.test(code)
    ? "has a certificate of an unknown authority: name the file with the authority's certificate in sslrootcert"
    : null
}

const ofDatabase = (error: SqlError.SqlError, { settings }: Starting): string | null => {
  const url = settings?.databaseUrl ? URL.parse(Redacted.value(settings.databaseUrl)) : null
  const server = url === null ? "the embedded PostgreSQL" : `the PostgreSQL at ${url.host}${url.pathname}`
  const where = settings?.databaseUrl ? `DATABASE_URL: ${server}` : server
  const system = withCode(error)
  const code = textOf(system, "code")
  const refusal = refusals[code] ?? ofCertificate(code)
  if (refusal !== null) return `${where} ${refusal}`
  // The connection could not be established: no statement was sent.
  if (error.reason._tag === "ConnectionError" || error.reason.operation === "connect") {
    const why =
      code === "" ? textOf(Predicate.hasProperty(error.reason, "cause") ? error.reason.cause : null, "message") : code
    // The first bytes of another protocol were read as the length of a message.
    if (why.includes("maxMessageSize")) return `${where} is no PostgreSQL: another service answers at this port`
    if (textOf(system, "message").includes("unsupported startup parameter")) {
      return `${where} is a pooler, which refuses the settings of the gateway's sessions: connect to the server itself, because the gateway has pools of its own`
    }
    if (why.includes("does not support TLS")) return `${where} does not offer TLS, and sslmode asks for it`
    const remedy = url === null ? "" : "; start it, or correct the URL"
    return `${where} cannot be reached (${why === "" ? error.message : why})${remedy}`
  }
  return null
}

/** Errors whose message already is such a sentence. */
const ownSentences: ReadonlySet<string> = new Set([
  "SettingsError",
  "SecretKeyError",
  "EmbeddedPostgresError",
  "GatewayError"
])

/** The sentence for a known error; null for an unknown one. */
export const startFault = (cause: Cause.Cause<unknown>, starting: Starting): string | null => {
  const squashed = Cause.squash(cause)
  // A failed migration contains the error of its failed statement.
  const error =
    Predicate.isTagged(squashed, "MigrationError") &&
    Predicate.hasProperty(squashed, "cause") &&
    isSqlError(squashed.cause)
      ? squashed.cause
      : squashed
  if (Predicate.hasProperty(error, "_tag") && ownSentences.has(String(error._tag))) return textOf(error, "message")
  if (Predicate.isTagged(error, "InvalidNetwork")) return `TIDEGATE_EGRESS_ALLOW: ${textOf(error, "message")}`
  if (isSqlError(error)) return ofDatabase(error, starting)
  const system = withCode(error)
  if (/^(?:listen|bind)$/.test(textOf(system, "syscall")) || textOf(system, "syscall") === "getaddrinfo")
    return listening(system, starting)
  return null
}
