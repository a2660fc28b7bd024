import { Effect, Layer } from "effect"
import { IngressSender } from "@tidegate/entities/Source/IngressSender"
import { IngressHandler } from "./IngressHandler.ts"
import { exchangeOwn } from "./wire/OwnExchange.ts"

/** Lets the control API of this process send requests to sources, by the same way as their senders. */
export const layer: Layer.Layer<IngressSender, never, IngressHandler> = Layer.effect(
  IngressSender,
  Effect.map(IngressHandler, ({ handle }) =>
    IngressSender.of({
      send: (request) =>
        Effect.callback((resume) => {
          const hangUp = exchangeOwn(request, handle, (answer) => resume(Effect.succeed(answer)))
          return Effect.sync(hangUp)
        })
    })
  )
)
