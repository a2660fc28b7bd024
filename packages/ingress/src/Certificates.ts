import { Context, Effect, Layer } from "effect"
import { Egress } from "@tidegate/egress/Egress"
import { nobody, WeighedCache } from "@tidegate/runtime/WeighedCache"

/** Certificates that are kept; a provider has only a few. */
const maxKept = 500
/** A certificate has its own expiry; it is fetched again once a day all the same. */
const keptForMs = 24 * 3_600_000
/** A URL that returned no certificate is not fetched again for this time, because a sender can name it in every request. */
const refusedForMs = 60_000
const timeoutMs = 5_000
const largestBytes = 65_536
/** Fetches in progress, and fetches started within a minute. Above it, requests that need a fetch are refused: anybody can name new URLs. */
const maxFetching = 16
const maxPerMinute = 60

/**
 * The certificates that senders name in their requests (AWS SNS, PayPal). The verifiers have checked that the URL is on a host of the
 * provider.
 */
export class Certificates extends Context.Service<
  Certificates,
  {
    /** The certificate as PEM; empty if the URL returns none; undefined if it has to be loaded. */
    readonly get: (url: string) => string | undefined
    /** Fetches the certificate; concurrent callers share one fetch. Rejects if the host could not be reached: the result is then unknown. */
    readonly load: (url: string) => Promise<void>
  }
>()("@tidegate/ingress/Certificates") {
  static readonly layer: Layer.Layer<Certificates, never, Egress> = Layer.effect(
    Certificates,
    Effect.map(Egress, (egress) => {
      const kept = new WeighedCache<string, { readonly pem: string; readonly until: number }>(maxKept)
      const loading = new Map<string, Promise<void>>()
      let minute = 0
      let begun = 0

      const keep = (url: string, pem: string): void => {
        const until = performance.now() + (pem === "" ? refusedForMs : keptForMs)
        kept.set(url, { pem, until }, { bytes: url.length + pem.length, owner: nobody })
      }

      const download = async (url: string): Promise<void> => {
        const answer = await egress.deliver({ method: "GET", url, timeoutMs, captureBytes: largestBytes })
        if (answer.errorCode !== null) throw new Error(`${url}: ${answer.errorCode}`)
        // An error of the host proves nothing about the certificate.
        if ((answer.status ?? 500) >= 500) throw new Error(`${url}: status ${answer.status}`)
        const text = answer.status === 200 ? answer.body.toString("latin1") : ""
        keep(url, text.includes("-----BEGIN CERTIFICATE-----") ? text : "")
      }

      return Certificates.of({
        get: (url) => {
          const found = kept.get(url)
          if (found === undefined || performance.now() < found.until) return found?.pem
          kept.delete(url)
          return undefined
        },
        load: (url) => {
          const known = loading.get(url)
          if (known !== undefined) return known
          const now = Math.floor(performance.now() / 60_000)
          if (now !== minute) {
            minute = now
            begun = 0
          }
          if (loading.size >= maxFetching || begun >= maxPerMinute) {
            return Promise.reject(new Error("too many certificates are asked for"))
          }
          begun++
          const started = download(url).finally(() => loading.delete(url))
          loading.set(url, started)
          return started
        }
      })
    })
  )
}
