import { Effect } from "effect"
import { CliFailure, usage } from "../Failure.ts"
import { call, lookUp, type Schemas } from "../Gateway.ts"
import { plain, say } from "../Output.ts"
import { nameOf, type Route } from "../Routes.ts"

/** The listener's own destination and connection for a source: which there are, and what `listen` makes of them. */

/** Milliseconds that the clean-up at the end may take. */
const goodbyeMs = 5_000

/** A route with the name of the listener's destination and connection for it. */
export interface Own extends Route {
  readonly name: string
}

/**
 * The name of the listener's own destination and connection for the source. Existing ones are reused. A resource of another user with this
 * name is not changed into a tunnel. Missing ones are created only if the user wants that.
 */
export const ownName = Effect.fnUntraced(function* (listener: string, { source, target }: Route, create: boolean) {
  const name = `${listener}-${nameOf(source)}`.slice(0, 155)
  const there = yield* lookUp("destination", name)
  if (there !== null && there.type !== "CLI") {
    return yield* usage(`the destination ${name} is there already, of type ${there.type}: say another --name`)
  }
  const wire = yield* lookUp("connection", name)
  const sourceId = typeof source === "string" ? undefined : source.id
  if (wire !== null && (wire.source?.id !== sourceId || wire.destination?.id !== there?.id)) {
    return yield* usage(`the connection ${name} is there already, and leads elsewhere: say another --name`)
  }
  if (!create && (there === null || wire === null)) {
    const message = plain(
      `nothing of ${nameOf(source)} leads to you yet; --create makes the destination and connection ${name}`
    )
    return yield* new CliFailure({ code: "missing", message })
  }
  return { name, source, target } satisfies Own
})

/**
 * Creates what is missing. The filter becomes a rule of the connection: the gateway applies it, so requests that do not match are
 * recorded as ignored and never reach this program.
 */
export const wired = (
  { name, source, target }: Own,
  asked: { readonly path: string; readonly rules: Array<Schemas["ConnectionRule"]> }
) =>
  call(async (client, signal) => {
    const from = typeof source === "string" ? await client.put("/sources", { body: { name: source }, signal }) : source
    const config = { path: asked.path }
    const destination = await client.put("/destinations", { body: { name, type: "CLI", config } as never, signal })
    const body = { name, source_id: from.id, destination_id: destination.id, rules: asked.rules, disabled_at: null }
    const connection = await client.put("/connections", { body, signal })
    return { source: from, destination, connection, target }
  })

/**
 * Disables the connection at the end, because later events would only fail. Fails open, because the user wants to end the program, and
 * the next start enables the connection in any case.
 */
export const unwired = (connectionId: string) =>
  call((client, signal) =>
    client.put("/connections/{id}/disable", {
      params: { path: { id: connectionId } },
      signal: AbortSignal.any([signal, AbortSignal.timeout(goodbyeMs)])
    })
  ).pipe(Effect.catch(() => say("the connection could not be disabled: its events fail until the next listen")))
