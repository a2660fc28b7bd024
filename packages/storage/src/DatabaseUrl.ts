import { Redacted } from "effect"
import { readFileSync } from "node:fs"
import type { ConnectionOptions } from "node:tls"

/**
 * The parameters of a database URL that have an effect. The driver would ignore other parameters, including those that should protect the connection.
 */
const known: ReadonlySet<string> = new Set([
  "application_name",
  "connect_timeout",
  "dbname",
  "host",
  "options",
  "password",
  "port",
  "sslmode",
  "sslrootcert",
  "user"
])

/** The modes in which the server's certificate is always checked. The driver also checks the name, as `verify-full` says. */
const verifying: ReadonlySet<string> = new Set(["require", "verify-ca", "verify-full"])

const rootCertificates = ({ searchParams }: URL): string | null => searchParams.get("sslrootcert")

/** The error of a URL that can be found without a connection, as a sentence without the URL's secrets. Null: there is none. */
export const faultOfDatabaseUrl = (given: Redacted.Redacted): string | null => {
  const text = Redacted.value(given)
  const [, authority] = /^postgres(?:ql)?:\/\/([^/?#]*)/.exec(text) ?? []
  if (authority === undefined) return "must begin with postgres:// or postgresql://"
  const url = URL.parse(text)
  const host = url?.searchParams.get("host") ?? authority.slice(authority.lastIndexOf("@") + 1)
  if (host.includes(",")) {
    return "names several hosts, of which the gateway cannot choose one: name an address that always leads to the primary server"
  }
  if (url === null) return "is not a URL: percent-encode special characters in the user name and the password"
  for (const name of url.searchParams.keys()) {
    if (!known.has(name)) return `has the parameter ${name}, which has no effect here: remove it`
  }
  const roots = rootCertificates(url)
  if (roots === null) return null
  if (!verifying.has(url.searchParams.get("sslmode") ?? "")) {
    return "has sslrootcert, which has an effect only with sslmode=verify-full"
  }
  try {
    readFileSync(roots)
    return null
  } catch (error) {
    return `has sslrootcert, and the file ${roots} cannot be read (${(error as NodeJS.ErrnoException).code})`
  }
}

/** The options for the driver: the URL, and the authorities to trust if the URL names a file of them. */
export const connectionTo = (
  given: Redacted.Redacted
): { readonly url: Redacted.Redacted; readonly ssl?: ConnectionOptions } => {
  const url = URL.parse(Redacted.value(given))
  const roots = url === null ? null : rootCertificates(url)
  return roots === null ? { url: given } : { url: given, ssl: { ca: readFileSync(roots) } }
}
