/**
 * The URL of a destination (or of an upstream) with the path and query of a request appended. Null if the path would leave the
 * URL's own path: fails closed, because the operator has not opened other paths to the sender.
 *
 * `..` segments are resolved here and end at the root of the request's own path. A target may decode slashes and dots, or cut off path
 * parameters, before it resolves a path. If the rest would then contain a `..` segment, it is refused, because only the target knows
 * whether it does so. Everything else stays unchanged.
 *
 * `path` and `query` (without its question mark) are as they arrived, not decoded.
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

/** A path without dot segments and without characters that a URL encodes. */
const plainPath = /^(?:\/(?!\.)[\w.~!$&'()*+,:=@-]*)+$/

const containedPath = (path: string): string | null => {
  if (plainPath.test(path)) return path
  // A backslash would become a slash, a hash and a question mark would end the path, and a path must begin with a slash.
  const encoded = ascii(path).replaceAll("\\", "%5C").replaceAll("#", "%23").replaceAll("?", "%3F")
  const { pathname } = new URL(`http://target${encoded.startsWith("/") ? "" : "/"}${encoded}`)
  return mayStepUp(pathname) ? null : pathname
}

/** Node decodes a request's target as latin-1; a URL would treat non-ASCII bytes as characters. */
const ascii = (text: string): string =>
  text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)

/** No target decodes more often, and there is no good reason to encode more often. */
const maxDecodings = 4

/** An ASCII character, encoded in one byte, or in two to four (invalid UTF-8 that some decoders accept). */
const escapes = /%([0-7][\da-f])|%(?:c|e0%8|f0%80%8)([01])%([89ab][\da-f])/gi

/** Two dots as a whole path segment. A backslash counts as a slash; parameters, a query, a space or a control character end a segment. */
const step = /[/\\]\.\.(?:[/\\;?# \p{Cc}]|$)/u
/** Characters that URLs and file systems ignore. */
const passedOver = /[ \p{Cc}]/gu

/** Whether a target that decodes the path once or more may find a `..` segment in it. Also true if the decoding does not end. */
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
