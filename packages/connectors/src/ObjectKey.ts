/** The keys of objects. */

export const longestKeyBytes = 1_024

/**
 * Why a key is not allowed; null if it is. Stores accept more than this. But an object whose key cannot be in an XML listing could not be
 * found again, and a `..` segment would be resolved on the way, so another object would be written.
 */
export const keyFault = (key: string): string | null => {
  if (Buffer.byteLength(key) > longestKeyBytes) return `has more than ${longestKeyBytes} bytes`
  if (/[\p{Cc}\ufffe\uffff]/u.test(key)) return "has control characters"
  return key.split("/").some((part) => part === "." || part === "..") ? 'has "." or ".." between slashes' : null
}

/** One path segment as signatures require it: encoded exactly by RFC 3986. */
export const encoded = (part: string): string =>
  encodeURIComponent(part).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** The URL of the object with this key in a bucket. */
export const objectUrl = (bucket: string, key: string): string => `${bucket}/${key.split("/").map(encoded).join("/")}`
