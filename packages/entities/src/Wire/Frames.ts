import { Effect, Exit, Layer, Schema } from "effect"
import { RpcMessage, RpcSerialization } from "effect/rpc"
import { metrics } from "@tidegate/telemetry/Metrics"

/**
 * The largest message between two processes, in bytes. Nothing that is sent comes near: a hand-over of events carries at
 * most 8 MiB (`Handover`), a command and its answer what a control call may.
 */
export const largestFrame = 32 * 1024 * 1024

const sent = metrics.remoteMessages.at("sent")
const received = metrics.remoteMessages.at("received")

type Serialization = RpcSerialization.RpcSerialization["Service"]
type Parser = ReturnType<Serialization["makeUnsafe"]>

const isExit = (message: unknown): message is { readonly _tag: "Exit"; readonly requestId: string } =>
  typeof message === "object" && message !== null && "_tag" in message && message._tag === "Exit"

/**
 * How messages are written on the wire and read from it: the library's binary frames, bounded on both sides. What is too
 * large is not sent, and ends the one call that it belongs to. What is too large, or no frame, when it comes ends the
 * connection: the library would go on with a reader that takes nothing any more.
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
            // The one error at which the library's server closes a connection; ours closes its own at it too.
            throw new RpcSerialization.MaxBufferSizeExceeded({ maxBufferSize: largestFrame })
          }
        }
      }
    }
    return RpcSerialization.RpcSerialization.of({ ...binary, makeUnsafe: () => bounded(binary.makeUnsafe()) })
  })
).pipe(Layer.provide(RpcSerialization.layerSchemaBinary({ maxFrameSize: largestFrame })))

/**
 * The same for a caller, telling when what came could not be read. Whatever comes tells that the runner lives, also the part of a
 * message that is long on its way.
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
