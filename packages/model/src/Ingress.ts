import { Context, Layer } from "effect"

/** The path that the URLs of all sources start with. */
export const ingressPath = "/e/"

/** The gateway's public addresses. */
export class Ingress extends Context.Service<
  Ingress,
  {
    /** The base of every source's URL: absolute, without a trailing slash. */
    readonly baseUrl: string
    /** The base of the control API's routes: absolute, without a trailing slash. Its origin may be that of `baseUrl`. */
    readonly publicUrl: string
  }
>()("@tidegate/model/Ingress") {
  /** `ingressUrl`: an origin for sources only; null: sources share the control API's origin. */
  static readonly layer = (publicUrl: string, ingressUrl: string | null = null): Layer.Layer<Ingress> =>
    Layer.succeed(Ingress, ingressAt(publicUrl, ingressUrl))
}

/** The same as a value. */
export const ingressAt = (publicUrl: string, ingressUrl: string | null = null): Ingress["Service"] => ({
  baseUrl: withoutSlash(ingressUrl ?? publicUrl) + withoutSlash(ingressPath),
  publicUrl: withoutSlash(publicUrl)
})

const withoutSlash = (url: string): string => url.replace(/\/+$/, "")

/** The base to which the path of a request to a source is appended to get the URL that its sender has called. */
export const ingressOrigin = ({ baseUrl }: Ingress["Service"]): string => baseUrl.slice(0, -ingressPath.length + 1)

/**
 * Whether the text may be a slug: the owner's own name for a source in its URL, beside its id. An id has an underscore and a slug
 * has none, so they cannot be confused.
 */
export const isSlug = (text: string): boolean => slug.test(text)

const slug = /^[a-z0-9-]{3,63}$/

/** A source's public URL, by its slug or its id. Senders may append a path and a query. */
export const sourceUrl = (ingress: Pick<Ingress["Service"], "baseUrl">, name: string): string =>
  `${ingress.baseUrl}/${name}`

/** The path that the callbacks of all channel subscriptions start with. */
export const channelPath = "/channels/"

/** The path that the URLs start with at which steps of runs wait for a callback. */
export const callbackPath = "/callbacks/"

/** The paths of ingress: all others are the control API's. */
export const ingressPaths: ReadonlyArray<string> = [ingressPath, channelPath, callbackPath]

/** The path of the control API that the links for decisions start with. */
export const decisionPath = "/decisions/"

/** The public callback URL of a subscription, by its token. Providers send notifications there. */
export const channelUrl = (ingress: Pick<Ingress["Service"], "baseUrl">, token: string): string =>
  ingress.baseUrl.slice(0, -ingressPath.length + 1) + channelPath + token
