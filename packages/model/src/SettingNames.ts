import { Predicate, Result } from "effect"
import { didYouMean } from "./NearestName.ts"
import type { FieldErrors } from "./AuthSettings.ts"

/** A name without differences of spelling: `topicArn`, `topic-arn` and `TOPIC_ARN` become `topic_arn`. */
export const meant = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** Settings beside `auth` that decide whether and how a source verifies, by their normalized names. */
export const besideAuth: ReadonlyMap<string, string> = new Map([
  ["auth", "config.auth"],
  ["authtype", "config.auth_type"],
  ["type", "type"],
  ["config", "config"]
])

export const belongs = (place: string): string =>
  place.includes(".") ? `belongs into ${place}` : `belongs at the top, as ${place}`

/** The largest number of faults that are reported for one body: nobody reads a longer list. */
export const maxFaults = 20

/** The names of the settings of one kind of verification. */
export interface OwnNames {
  readonly names: ReadonlyArray<string>
  /** Other spellings accepted on write. */
  readonly aliases: ReadonlyArray<string>
}

/**
 * The members of a written `auth` that are not its `own`; `whose` says what they belong to. They are refused, because with a
 * misspelled setting a check would not take place although the writer believes it does.
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

/** Returns the decoded value, unless some of the written settings were refused already: then all faults, each once. */
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
