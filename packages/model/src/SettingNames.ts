import { Predicate, Result } from "effect"
import { didYouMean } from "./NearestName.ts"
import type { FieldErrors } from "./AuthSettings.ts"

/** A name as somebody may have meant it: `topicArn`, `topic-arn` and `TOPIC_ARN` are `topic_arn`. */
export const meant = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** What decides, beside the settings of `auth`, whether and how a source verifies, by what its name means. */
export const besideAuth: ReadonlyMap<string, string> = new Map([
  ["auth", "config.auth"],
  ["authtype", "config.auth_type"],
  ["type", "type"],
  ["config", "config"]
])

export const belongs = (place: string): string =>
  place.includes(".") ? `belongs into ${place}` : `belongs at the top, as ${place}`

/** What is told of one body: nobody reads a longer list to its end. */
export const maxFaults = 20

/** The names that the settings of one kind of verification have. */
export interface OwnNames {
  readonly names: ReadonlyArray<string>
  /** Other spellings accepted on write. */
  readonly aliases: ReadonlyArray<string>
}

/**
 * The members of a written `auth` that are none of its `own`; `whose` says what has those. Refused, because a name that is
 * only nearly right is a check that is only believed in.
 */
export const unknownSettings = (whose: string, { aliases, names }: OwnNames, written: unknown): FieldErrors => {
  if (!Predicate.isObject(written) || Array.isArray(written)) return []
  const own = [...names, ...aliases]
  return Object.keys(written)
    .filter((name) => !own.includes(name))
    .slice(0, maxFaults)
    .map((name) => {
      const spelling = own.find((known) => meant(known) === meant(name))
      const place = besideAuth.get(meant(name))
      const message =
        spelling !== undefined
          ? `is written config.auth.${spelling}`
          : place !== undefined
            ? belongs(place)
            : `is no setting of ${whose}: config.auth takes ${names.join(", ")}${didYouMean(name, names)}`
      return { path: `config.auth.${name}`, message }
    })
}

/** What was decoded, unless some of what was written is refused already: then all that is wrong, once each. */
export const unlessRefused = <A>(
  refused: FieldErrors,
  decoded: Result.Result<A, FieldErrors>
): Result.Result<A, FieldErrors> => {
  if (refused.length === 0) return decoded
  const paths = new Set(refused.map(({ path }) => path))
  return Result.fail([
    ...refused,
    ...(Result.isFailure(decoded) ? decoded.failure.filter(({ path }) => !paths.has(path)) : [])
  ])
}
