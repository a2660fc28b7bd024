import { Effect, Predicate, Schema } from "effect"

/**
 * The embedded server cannot be had: no binaries for this platform, a home folder that cannot be used, a data directory that
 * does not open, or a server that does not start. `message` says what happened and what the operator can do; nothing branches
 * on the kind, because there is nothing else to do about it.
 */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** Why, in the system's word for it: ` (EACCES)`. */
const because = (cause: unknown): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? ` (${cause.code})` : ""

/** Runs synchronous code that may throw; `message` says what it means when it does. */
export const attempt = <A>(message: string, run: () => A): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.try({
    try: run,
    catch: (cause) => new EmbeddedPostgresError({ message: `${message}${because(cause)}`, cause })
  })
