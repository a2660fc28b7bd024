import { Context, Effect, Layer, Redacted } from "effect"
import type { Sharding } from "effect/cluster"
import { Egress } from "@tidegate/egress/Egress"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import type { Handshake } from "@tidegate/verification/Provider"

const patience = "5 seconds"
const timeoutMs = 5_000

/**
 * The work that a handshake requires before its answer: the source's actor stores an announced secret, and a subscription is confirmed by
 * fetching its URL. Ingress waits for nothing else but the database, and for this only in handshakes.
 */
export class HandshakeSteps extends Context.Service<
  HandshakeSteps,
  {
    /** Rejects if a step failed: the provider then tries again. */
    readonly take: (
      source: { readonly id: string; readonly teamId: string },
      handshake: Pick<Handshake, "remember" | "confirmUrl">
    ) => Promise<void>
  }
>()("@tidegate/ingress/HandshakeSteps") {
  static readonly layer: Layer.Layer<HandshakeSteps, never, Egress | Sharding.Sharding> = Layer.effect(
    HandshakeSteps,
    Effect.gen(function* () {
      const egress = yield* Egress
      const source = yield* SourceEntity.client
      const run = Effect.runPromiseWith(yield* Effect.context())

      const confirm = async (url: string): Promise<void> => {
        const answer = await egress.deliver({ method: "GET", url, timeoutMs })
        if (answer.errorCode !== null || answer.status !== 200) {
          throw new Error(`the subscription could not be confirmed: ${answer.errorCode ?? answer.status}`)
        }
      }

      return HandshakeSteps.of({
        take: async ({ id, teamId }, { confirmUrl, remember }) => {
          if (remember !== undefined) {
            await run(
              source(id)
                .RememberSecret({ team_id: teamId, secret: Redacted.make(remember) })
                .pipe(Effect.timeout(patience), Effect.asVoid)
            )
          }
          if (confirmUrl !== undefined) await confirm(confirmUrl)
        }
      })
    })
  )
}
