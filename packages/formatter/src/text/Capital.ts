/** Letters with a special title-case form, which JavaScript's methods do not return. */
const titles = new Map(Array.from("ǅǈǋǲᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾼῌῼ", (title) => [title.toLowerCase(), title] as const))

/** Georgian letters, whose capitals are used only for whole texts. */
const georgian = /[\u10d0-\u10ff]/

/** The form of a letter at the start of a word: if it becomes several capitals (ß, ﬁ), only the first stays a capital. */
export const capitalOf = (letter: string, locale?: string): string => {
  const small = letter.toLowerCase()
  const title = titles.get(small)
  if (title !== undefined) return title
  if (georgian.test(small)) return small
  return letter.toLocaleUpperCase(locale).replace(/(?<=\p{Lu}).+/u, (others) => others.toLocaleLowerCase(locale))
}

/** Characters that join the parts of a word; each part gets a capital. */
const joints = /([-\u2010\u2011/])/

/** `o'reilly`, `d'angelo`, `l'oréal`: the part after the apostrophe is a name and gets a capital, too. In `don't` and `i'll` it does not. */
const prefixed = /^([dlo]['\u2019])(\p{L}{3,})/iu

/** Whether each letter is followed by a dot: `u.s.a.` */
export const areInitials = (word: string): boolean => /^\p{P}*(?:\p{L}\.){2,}\p{P}*$/u.test(word)

const capitalOfPart = (part: string, locale?: string): string => {
  const first = /[\p{L}\p{N}]/u.exec(part)
  // `2nd` and `3rd` begin with a digit, so they stay unchanged.
  if (first === null || /\p{N}/u.test(first[0])) return part
  const rest = part.slice(first.index)
  const name = prefixed.exec(rest)
  const before = part.slice(0, first.index)
  if (name !== null) return before + name[1]!.toUpperCase() + capitalOfPart(rest.slice(name[1]!.length), locale)
  return before + capitalOf(first[0], locale) + rest.slice(first[0].length)
}

/**
 * Adds capitals to a word in lower case. `staysSmall` decides for inner parts whether they stay in lower case, such as `of` in
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
