/** Loopback, in the ways in which the client takes it. */
const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Where a tunnel's client says that its target is, without a slash at the end; undefined: it cannot be. It is shown with attempts, and
 * nothing is ever sent there by the gateway.
 */
export const localUrlOf = (text: string | undefined): string | null | undefined => {
  if (text === undefined || text === "") return null
  const url = text.length <= 2_048 ? URL.parse(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || !loopback.test(url.hostname)) return undefined
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined
  return url.href.replace(/\/+$/, "")
}
