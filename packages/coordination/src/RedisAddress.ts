import { Redacted, Result } from "effect"

/** Where a Redis is, and by what it lets us in. */
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
 * Reads `redis://` and, with TLS, `rediss://`. What is wrong with it is told without a word of it: it holds a password. What would have
 * no effect (a query, a path that is no database) is refused.
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
