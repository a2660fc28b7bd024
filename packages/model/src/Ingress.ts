import { Context, Layer } from "effect"

/** The path that the URLs of all sources begin with. */
export const ingressPath = "/e/"

/** Where senders reach the gateway: the base of every source's URL. */
export class Ingress extends Context.Service<
  Ingress,
  {
    /** Absolute, without a trailing slash. */
    readonly baseUrl: string
  }
>()("@tidegate/model/Ingress") {
  static readonly layer = (baseUrl: string): Layer.Layer<Ingress> =>
    Layer.succeed(Ingress, { baseUrl: baseUrl.replace(/\/+$/, "") })
}

/** The gateway's own address under which all its routes answer. */
export const publicUrl = ({ baseUrl }: Ingress["Service"]): string =>
  baseUrl.endsWith(ingressPath.slice(0, -1)) ? baseUrl.slice(0, 1 - ingressPath.length) : baseUrl

/**
 * What names a source in its URL beside its id, chosen by its owner. An id has an underscore and a slug has none, so that
 * neither can be taken for the other.
 */
export const isSlug = (text: string): boolean => slug.test(text)

const slug = /^[a-z0-9-]{3,63}$/

/** A source's public URL, by its slug or its id. Senders may append a path and a query. */
export const sourceUrl = (ingress: Ingress["Service"], name: string): string => `${ingress.baseUrl}/${name}`
