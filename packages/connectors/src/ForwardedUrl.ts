/**
 * A destination's (or an upstream's) URL with the path and query of a request behind its own. Null when the path would
 * lead out of the URL's: fails closed, because what lies beside the path that the operator wrote is not the sender's.
 *
 * Steps up are taken here and end at the root of the request's own path. What then still reads as a step to somebody who
 * decodes slashes and dots, or cuts off path parameters, before he takes it, cannot be taken for him: whether it is one is
 * known to the target alone. Everything else stays as it came.
 *
 * `path` and `query` (without its question mark) are as they arrived, undecoded.
 */
export const forwardedUrl = (url: string, path: string, query: string): string | null => {
  if (query === "" && (path === "" || path === "/")) return url
  const suffix = containedPath(path)
  if (suffix === null) return null
  if (query === "" && suffix === "/") return url
  const [whole] = splitOnce(url, "#")
  const [base, ownQuery = ""] = splitOnce(whole, "?")
  const joined = suffix === "/" ? base : base.endsWith("/") ? base + suffix.slice(1) : base + suffix
  const parts = [ownQuery, ascii(query).replaceAll("#", "%23")].filter((part) => part !== "")
  return parts.length === 0 ? joined : `${joined}?${parts.join("&")}`
}

const splitOnce = (text: string, separator: string): readonly [string, string?] => {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** Without anything that could be a step, or that a URL writes in another way. */
const plainPath = /^(?:\/(?!\.)[\w.~!$&'()*+,:=@-]*)+$/

const containedPath = (path: string): string | null => {
  if (plainPath.test(path)) return path
  // A backslash would become a slash, a hash and a question mark would end the path, and what follows a host must be one.
  const encoded = ascii(path).replaceAll("\\", "%5C").replaceAll("#", "%23").replaceAll("?", "%3F")
  const { pathname } = new URL(`http://target${encoded.startsWith("/") ? "" : "/"}${encoded}`)
  return mayStepUp(pathname) ? null : pathname
}

/** Node reads a request's target byte by byte; a URL would take the bytes beyond ASCII for characters. */
const ascii = (text: string): string =>
  text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)

/** No target decodes more often, and nobody encodes more often for a good reason. */
const maxDecodings = 4

/** An ASCII character, encoded in one byte or (as UTF-8 forbids, and some decoders take it) in two, three or four. */
const escapes = /%([0-7][\da-f])|%(?:c|e0%8|f0%80%8)([01])%([89ab][\da-f])/gi

/** Two dots between slashes, where a backslash counts as one, and parameters, a query, or what ends a text in C, as an end. */
const step = /[/\\]\.\.(?:[/\\;?# \p{Cc}]|$)/u
/** Characters that URLs and file systems leave out. */
const passedOver = /[ \p{Cc}]/gu

/** Whether somebody who decodes a path once or more may find a step up in it; also when it does not come to an end. */
const mayStepUp = (path: string): boolean => {
  let read = path
  for (let pass = 0; pass <= maxDecodings; pass++) {
    const before = read
    read = read.replace(escapes, (_, byte: string | undefined, high: string, low: string) =>
      String.fromCharCode(
        byte === undefined ? (Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f) : Number.parseInt(byte, 16)
      )
    )
    if (step.test(read)) return true
    read = read.replace(passedOver, "")
    if (step.test(read)) return true
    if (read === before) return false
  }
  return true
}
