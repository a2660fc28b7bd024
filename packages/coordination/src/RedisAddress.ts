import { Redacted, Result } from "effect"

/** The address and the credentials of a Redis. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly username: string | null
  readonly password: Redacted.Redacted | null
  readonly database: number
  readonly isEncrypted: boolean
}

const form = "must be redis://[user:password@]host[:port][/database], or rediss:// with TLS"

/**
 * Parses `redis://` and, with TLS, `rediss://`. Error messages quote nothing of it, because it contains a password. Parts without an
 * effect (a query, or a path that is no database) are refused.
 */
export const redisAddress = (url: Redacted.Redacted): Result.Result<RedisAddress, string> => {
  const parsed = URL.parse(Redacted.value(url))
  if (parsed === null || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === "") return Result.fail(form)
  if (parsed.search !== "" || parsed.hash !== "") return Result.fail("has no options behind the database's number")
  const database = /^\/?(\d{0,4})$/.exec(parsed.pathname)
  if (database === null) return Result.fail("may have a database's number as its path, and nothing else")
  if (parsed.username !== "" && parsed.password === "") return Result.fail("has a user and no password")
  const [username, password] = [decoded(parsed.username), decoded(parsed.password)]
  if (username === null || password === null) return Result.fail("has a user or password that is badly escaped")
  return Result.succeed({
    host: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? 6379 : Number(parsed.port),
    username: username === "" ? null : username,
    password: password === "" ? null : Redacted.make(password),
    database: Number(database[1]),
    isEncrypted: parsed.protocol === "rediss:"
  })
}

const decoded = (part: string): string | null => {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}
