import { isLoopbackHost } from "@tidegate/model/LoopbackHost"

/**
 * The address of a tunnel client's own target, as the client names it, without a trailing slash; undefined: it is not acceptable.
 * It is shown with attempts, and the gateway never sends anything there.
 */
export const localUrlOf = (text: string | undefined): string | null | undefined => {
  if (text === undefined || text === "") return null
  const url = text.length <= 2_048 ? URL.parse(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || !isLoopbackHost(url.hostname)) return undefined
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined
  return url.href.replace(/\/+$/, "")
}
