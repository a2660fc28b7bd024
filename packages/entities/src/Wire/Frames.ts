import { Effect, Exit, Layer, Schema } from "effect"
import { RpcMessage, RpcSerialization } from "effect/rpc"
import { metrics } from "@tidegate/telemetry/Metrics"

/**
 * The largest message between two processes, in bytes. Real messages are far smaller: a handover of events has at most 8 MiB
 * (`Handover`), a command and its answer at most what a control call may have.
 */
export const largestFrame = 32 * 1024 * 1024

const sent = metrics.remoteMessages.at("sent")
const received = metrics.remoteMessages.at("received")

type Serialization = RpcSerialization.RpcSerialization["Service"]
type Parser = ReturnType<Serialization["makeUnsafe"]>

const isExit = (message: unknown): message is { readonly _tag: "Exit"; readonly requestId: string } =>
  typeof message === "object" && message !== null && "_tag" in message && message._tag === "Exit"

/**
 * How messages are written to and read from the network: the library's binary frames, with a limit in both directions. A message
 * that is too large to send fails only its own call. A received message that is too large or malformed ends the connection,
 * because the library would keep a reader that takes nothing any more.
 */
export const layer: Layer.Layer<RpcSerialization.RpcSerialization> = Layer.effect(
  RpcSerialization.RpcSerialization,
  Effect.map(RpcSerialization.RpcSerialization, (binary) => {
    const encodeExit = Schema.encodeUnknownSync(
      binary.codecFor(Schema.Exit(Schema.Never, Schema.Never, Schema.Defect()))
    )
    const bounded = (parser: Parser): Parser => {
      const encode = (message: unknown): ReturnType<Parser["encode"]> => {
        const bytes = parser.encode(message)
        sent.add()
        if (bytes === undefined || bytes.length <= largestFrame) return bytes
        const tooLarge = new Error(`a message of ${bytes.length} bytes is too large for the cluster`)
        if (!isExit(message)) throw tooLarge
        return parser.encode({ _tag: "Exit", requestId: message.requestId, exit: encodeExit(Exit.die(tooLarge)) })
      }
      return {
        encode,
        decode: (bytes) => {
          try {
            const messages = parser.decode(bytes)
            received.add(messages.length)
            return messages
          } catch {
            // The only error at which the library's server closes a connection. Our client closes its connection at it too.
            throw new RpcSerialization.MaxBufferSizeExceeded({ maxBufferSize: largestFrame })
          }
        }
      }
    }
    return RpcSerialization.RpcSerialization.of({ ...binary, makeUnsafe: () => bounded(binary.makeUnsafe()) })
  })
).pipe(Layer.provide(RpcSerialization.layerSchemaBinary({ maxFrameSize: largestFrame })))

/**
 * The same for a caller, with a callback when something unreadable was received. Any received byte shows that the runner lives,
 * including a part of a message that takes long.
 */
export const watched = (serialization: Serialization, onUnreadable: (error: unknown) => void): Serialization => ({
  ...serialization,
  makeUnsafe: () => {
    const parser = serialization.makeUnsafe()
    return {
      encode: parser.encode,
      decode: (bytes) => {
        try {
          const messages = parser.decode(bytes)
          return messages.length > 0 ? messages : [RpcMessage.constPong]
        } catch (error) {
          onUnreadable(error)
          throw error
        }
      }
    }
  }
})
