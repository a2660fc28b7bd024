import { Context, type Effect } from "effect"

/** A request that the gateway sends to one of its own sources. */
export interface SentRequest {
  /** The id under which it is stored. */
  readonly id: string
  readonly method: string
  /** Path and query of the source's URL. */
  readonly target: string
  /** Names and values in turn, as on the wire. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
}

/** What a sender gets back. */
export interface SenderAnswer {
  readonly status: number
  readonly contentType: string | null
  /** Cut to 64 KiB. */
  readonly body: Uint8Array
}

/**
 * Sends a request to ingress of this process, as if a sender had sent it to the source's public URL: it passes the same limits and checks.
 * Null: its connection ended without an answer. Interrupting it hangs up, as a sender does. Processes with a public port have it.
 */
export class IngressSender extends Context.Service<
  IngressSender,
  { readonly send: (request: SentRequest) => Effect.Effect<SenderAnswer | null> }
>()("@tidegate/entities/IngressSender") {}
