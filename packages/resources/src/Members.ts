import { Schema, SchemaTransformation } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { describedAs } from "./DescribedAs.ts"
import { isStorable } from "./Input.ts"

/**
 * Members that the bodies of several resources share. Each check has its own message, and beside it the description for the
 * document.
 */

export const text = Schema.String.annotate({ message: "must be a string" })

/** An optional member. */
export const optional = <S extends Schema.Top>(schema: S): Schema.optionalKey<S> => Schema.optionalKey(schema)

/** One of a closed list of words. */
export const OneOf = <const Words extends ReadonlyArray<string>>(words: Words): Schema.Literals<Words> =>
  Schema.Literals(words).annotate({ message: `must be one of ${words.join(", ")}` })

/**
 * Characters that make a text look like another one: invisible ones, and those that change the direction of what follows. Inside
 * an emoji they belong to it.
 */
const hasUnseen = (name: string): boolean =>
  /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u.test(name.replaceAll(/\p{RGI_Emoji}/gv, ""))

/** For texts that are shown as names and are limited elsewhere. */
export const printable = Schema.makeFilter(
  (name: string) =>
    (/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*$/u.test(name) && !hasUnseen(name)) ||
    "must be printable characters, none of them zero-width and none that change the text direction",
  { toJsonSchema: () => ({}) }
)

/** An external name without characters that a name must not have. */
export const seenOf = (name: string): string =>
  name.replaceAll(
    /(\p{RGI_Emoji})|[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/gv,
    "$1"
  )

/**
 * A visible name of 1 to `longest` characters. Control characters and line breaks are not printable, and spaces alone are no
 * name.
 */
export const nameUpTo = (longest: number) => {
  const isPrintable = new RegExp(String.raw`^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,${longest}}$`, "u")
  return text.check(
    Schema.makeFilter(
      (name: string) => {
        if (!isPrintable.test(name) || name.trim() === "") return `must be 1 to ${longest} printable characters`
        return !hasUnseen(name) || "must not contain zero-width characters or characters that change the text direction"
      },
      { toJsonSchema: () => ({ minLength: 1, maxLength: longest, pattern: String.raw`\S` }) }
    )
  )
}

/** The name of any resource. */
export const Name = nameUpTo(155).annotate({ description: "Printable characters, unique in the team" })

/**
 * A name whose surrounding spaces are removed. The document describes the text before that, because checks of the trimmed text
 * would not appear there.
 */
export const trimmedName = (longest: number, judged: Schema.Codec<string>, description: string) =>
  text.pipe(
    describedAs(nameUpTo(longest).annotate({ description: `${description}. Spaces around it are left out` })),
    Schema.decodeTo(judged, SchemaTransformation.trim())
  )

const storableUpTo = (longest: number) => (value: string | null) =>
  value === null ||
  (Characters.isUpTo(value, longest) && isStorable(value)) ||
  `must be at most ${longest} characters of valid Unicode without NUL`

/** Any text of at most so many characters that can be stored: no NUL, no lone surrogate. */
export const Storable = (longest: number) =>
  text.check(Schema.makeFilter(storableUpTo(longest), { toJsonSchema: () => ({ maxLength: longest }) }))

/** The same, or null. */
export const DescriptionUpTo = (longest: number) =>
  // For the document; the check of the whole reports a text that is too long.
  Schema.NullOr(
    text
      .check(Schema.makeFilter(() => true, { toJsonSchema: () => ({ maxLength: longest }) }))
      .annotate({ description: "For display" })
  )
    .annotate({ message: "must be a string or null" })
    .check(Schema.makeFilter(storableUpTo(longest)))

export const Description = DescriptionUpTo(4096)

/** A setting that may be absent or null: both mean its default. For settings that are only described. */
export const setting = <S extends Schema.Top>(schema: S): Schema.optionalKey<Schema.NullOr<S>> =>
  Schema.optionalKey(Schema.NullOr(schema))

export const HeaderName = Schema.String.check(Schema.isPattern(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/u))

/** A secret text. */
export const secretText = (description: string) =>
  Schema.String.check(Characters.between(1, 16_384)).annotate({
    description: `${description}. Encrypted at rest, masked on read; writing the mask back keeps it`
  })

/** A setting as a read shows it: secrets as `****` and their last four characters. */
export const shownText = Schema.optionalKey(Schema.String)

export const HttpUrl = (longest: number) =>
  Schema.String.check(Schema.isPattern(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\#]+$/u), Characters.upTo(longest)).annotate({
    format: "uri"
  })

/** An id of a resource in a body. */
export const Id = Schema.String.annotate({ message: "must be an id" }).check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/u, { message: "must be an id" })
)
