import { Context, Layer } from "effect"

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

/** A source's public URL. Senders may append a path and a query. */
export const sourceUrl = (ingress: Ingress["Service"], sourceId: string): string => `${ingress.baseUrl}/${sourceId}`
