import { Effect, Predicate, Schema } from "effect"

/**
 * The embedded server is not available: no binaries for this platform, an unusable home folder, a data directory that
 * cannot be opened, or a server that does not start. `message` says what happened and what the operator can do. There is one error type for
 * all of these, because callers can only report it.
 */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** The system's error code: ` (EACCES)`. */
const because = (cause: unknown): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? ` (${cause.code})` : ""

/** Runs synchronous code that may throw; `message` describes the failure. */
export const attempt = <A>(message: string, run: () => A): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.try({
    try: run,
    catch: (cause) => new EmbeddedPostgresError({ message: `${message}${because(cause)}`, cause })
  })
