/** Letters that have a form of their own for the beginning of a word, which no method of texts gives. */
const titles = new Map(Array.from("ǅǈǋǲᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾼῌῼ", (title) => [title.toLowerCase(), title] as const))

/** Letters of Georgian, which has capitals for whole texts alone. */
const georgian = /[\u10d0-\u10ff]/

/** A letter as it begins a word: of one that becomes several capitals (ß, ﬁ), the others are small. */
export const capitalOf = (letter: string, locale?: string): string => {
  const small = letter.toLowerCase()
  const title = titles.get(small)
  if (title !== undefined) return title
  if (georgian.test(small)) return small
  return letter.toLocaleUpperCase(locale).replace(/(?<=\p{Lu}).+/u, (others) => others.toLocaleLowerCase(locale))
}

/** What words are put together by: each part has a capital of its own. */
const joints = /([-\u2010\u2011/])/

/** `o'reilly`, `d'angelo`, `l'oréal`: what stands behind is a name, too. In `don't` and `i'll` it is not. */
const prefixed = /^([dlo]['\u2019])(\p{L}{3,})/iu

/** Letters with a dot behind each: `u.s.a.` */
export const areInitials = (word: string): boolean => /^\p{P}*(?:\p{L}\.){2,}\p{P}*$/u.test(word)

const capitalOfPart = (part: string, locale?: string): string => {
  const first = /[\p{L}\p{N}]/u.exec(part)
  // `2nd` and `3rd` begin with their digit.
  if (first === null || /\p{N}/u.test(first[0])) return part
  const rest = part.slice(first.index)
  const name = prefixed.exec(rest)
  const before = part.slice(0, first.index)
  if (name !== null) return before + name[1]!.toUpperCase() + capitalOfPart(rest.slice(name[1]!.length), locale)
  return before + capitalOf(first[0], locale) + rest.slice(first[0].length)
}

/**
 * A word in small letters with its capitals. `staysSmall` says of a part that stands within the word whether it has none, as `of` in
 * `State-of-the-Art`.
 */
export const capitalized = (
  word: string,
  locale?: string,
  staysSmall: (part: string) => boolean = () => false
): string => {
  if (areInitials(word)) return word.toLocaleUpperCase(locale)
  const parts = word.split(joints)
  return parts
    .map((part, at) => (at > 0 && at < parts.length - 1 && staysSmall(part) ? part : capitalOfPart(part, locale)))
    .join("")
}
