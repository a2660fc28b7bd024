import { Effect } from "effect"
import { Tunnel, type TunnelHost } from "./Tunnel.ts"
import type { Heard, Listening, TunnelResult } from "./TunnelProtocol.ts"

/** The tunnel of a destination, which exists once the destination is of a type that uses one. */
export class DestinationTunnel {
  readonly #host: TunnelHost
  #tunnel: Tunnel | null = null

  constructor(host: TunnelHost) {
    this.#host = host
  }

  get current(): Tunnel | null {
    return this.#tunnel
  }

  get isAway(): boolean {
    return this.#tunnel !== null && this.#tunnel.awaySince !== null
  }

  /** Sets whether the destination is of a type that uses a tunnel. */
  configure(isUsed: boolean): void {
    if (isUsed) this.#tunnel ??= new Tunnel(this.#host)
    this.#tunnel?.configure(isUsed)
  }

  attach(localUrl: string | null): string | null {
    return this.#tunnel?.attach(localUrl) ?? null
  }

  /** Handles the request of a process that has the tunnel's client. */
  listen(listening: Listening): Effect.Effect<Heard> {
    return Effect.callback<Heard>((resume) => {
      if (this.#tunnel === null) return resume(Effect.succeed({ jobs: [], ended: "gone" }))
      const withdraw = this.#tunnel.listen(listening, (heard) => resume(Effect.succeed(heard)))
      return Effect.sync(withdraw)
    })
  }

  answered(sessionId: string, results: ReadonlyArray<TunnelResult>): number {
    return this.#tunnel?.answered(sessionId, results) ?? results.length
  }

  leave(sessionId: string): void {
    this.#tunnel?.leave(sessionId)
  }

  /** The actor ends; the tunnel's sessions ask the next owner for its deliveries. */
  stop(): void {
    this.#tunnel?.stop()
  }
}
