import { Effect, Option } from "effect"
import { Client, type PulledMessage, pullMessages } from "@tidegate/client/source"
import { CliFailure, failureOf, usage } from "../Failure.ts"
import { access, find } from "../Gateway.ts"
import type { Print } from "../Looker.ts"
import { Json, jsonLine, plain } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"
import { runCommand } from "./RunCommand.ts"

/** What the command line asks for. */
interface Asked {
  readonly destination: string
  readonly ack: boolean
  readonly exec: Option.Option<string>
  readonly max: Option.Option<number>
  readonly wait: Option.Option<number>
}

/** The id of the destination. An id is not looked up: a key may be allowed to fetch messages, and nothing else. */
const idOf = Effect.fnUntraced(function* (nameOrId: string) {
  if (nameOrId.startsWith("des_")) return nameOrId
  const { id, type } = yield* find("destination", nameOrId)
  return type === "PULL"
    ? id
    : yield* usage(`${plain(nameOrId)} is of type ${type}: messages are fetched from destinations of type PULL`)
})

/** The message as it came, without the ways to settle it. */
const lineOf = (message: PulledMessage): string =>
  `${jsonLine({ ...message, bytes: undefined, ack: undefined, nack: undefined })}\n`

/** Resolves (with null: nothing failed) when the text has left this process: only then may its message be acknowledged. */
const written = (text: string): Promise<null> =>
  new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve(null)))
  })

interface Settling {
  readonly command: string | null
  readonly signal: AbortSignal
  readonly complain: Print
}

/** Prints or processes a message, and settles it. False: it was refused. */
const settled = async (message: PulledMessage, { command, complain, signal }: Settling): Promise<boolean> => {
  const failure = command === null ? await written(lineOf(message)) : await runCommand(command, lineOf(message), signal)
  if (failure === null) {
    await message.ack()
    return true
  }
  const { event_id } = message
  complain({ type: "refused", event_id, reason: failure }, `${event_id}: ${failure}: refused`)
  await message.nack(failure)
  return false
}

export const pulling = Effect.fn(function* ({ ack, destination, exec, max, wait }: Asked) {
  const command = Option.getOrNull(exec)
  if (ack === (command !== null)) {
    return yield* usage(
      "say when a message is acknowledged: --ack as soon as it is printed, or --exec 'command' when the command succeeds"
    )
  }
  const id = yield* idOf(destination)
  const client = new Client(yield* access)
  const isJson = yield* Json
  // Standard output has the messages, or what the command prints.
  const complain: Print = (record, words) =>
    void process.stderr.write(isJson ? `${jsonLine(record)}\n` : `${plain(words)}\n`)
  const consume = async (signal: AbortSignal): Promise<void> => {
    let [done, refused] = [0, 0]
    const messages = pullMessages(client, id, {
      ...(Option.isSome(max) ? { limit: max.value } : {}),
      ...(Option.isSome(wait) ? { waitSeconds: wait.value } : {}),
      signal,
      onUnavailable: (error, retryInMs) => {
        const { message } = failureOf(error)
        complain(
          { type: "unavailable", message, retryInMs },
          `${message}: retrying in ${(retryInMs / 1_000).toFixed(1)} s`
        )
      },
      onExpired: ({ event_id }) =>
        complain({ type: "expired", event_id }, `${event_id}: the lease has ended: the message may be handed out again`)
    })
    for await (const message of messages) {
      done++
      if (!(await settled(message, { command, complain, signal }))) refused++
    }
    if (refused > 0 && !signal.aborted) {
      throw new CliFailure({ code: "failed", message: `${refused} of ${done} messages were refused` })
    }
  }
  // Interrupted, it still settles the message in hand.
  const ending = new AbortController()
  let consumed: Promise<void> = Promise.resolve()
  return yield* untilStopped(
    Effect.tryPromise({ try: () => (consumed = consume(ending.signal)), catch: failureOf }).pipe(
      Effect.onInterrupt(() =>
        Effect.promise(() => {
          ending.abort()
          return consumed.catch((error: unknown) => {
            const { message } = failureOf(error)
            complain({ type: "failed", message }, message)
          })
        })
      )
    )
  )
})
