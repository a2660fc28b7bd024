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
