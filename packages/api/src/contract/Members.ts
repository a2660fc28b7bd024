import { Schema } from "effect"

/**
 * Members that the bodies of several resources share. A default is told as such where a member may be null too; elsewhere in
 * words, because generators of clients make a member that has one a member that must be written.
 */

export const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)

/** A setting that may be left out or null: both mean its default. */
export const setting = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const Name = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(155),
  Schema.isPattern(/\S/u)
).annotate({
  description: "Printable characters, unique in the team"
})

export const Description = setting(
  Schema.String.check(Schema.isMaxLength(4096)).annotate({ description: "For people" })
)

export const HeaderName = Schema.String.check(Schema.isPattern(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/u))

const secret = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(16_384))

/** Text that authenticates somebody. */
export const secretText = (description: string) =>
  secret.annotate({ description: `${description}. Encrypted at rest, masked on read; writing the mask back keeps it` })

/** What a read shows of a setting: secrets as `****` and their last four characters. */
export const shownText = optional(Schema.String)

export const HttpUrl = (longest: number) =>
  Schema.String.check(Schema.isPattern(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\#]+$/u), Schema.isMaxLength(longest)).annotate(
    {
      format: "uri"
    }
  )

/** An id of a resource, as it may be written. */
export const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/u))
