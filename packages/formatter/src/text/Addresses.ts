import { tooMuch } from "../engine/Fault.ts"
import { linkify } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"

export interface Place {
  readonly text: string
  readonly from: number
  readonly to: number
}

const isLocal = /[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]/
const domain = /[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?){1,10}/y

/**
 * Letters that this form of address cannot contain, in scripts that separate words by spaces: if one touches the text, the real address is
 * another one.
 */
const isForeign = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{M}]/u

/** Whether the mailbox or the domain continues beyond the found start or end. */
const goesOn = (input: string, from: number, to: number): boolean => {
  const before = input[from - 1]
  const behind = input[to] === "." || input[to] === "-" ? input[to + 1] : input[to]
  return (
    (before !== undefined && (isLocal.test(before) || isForeign.test(before)) && !/[./?&=#]/.test(before)) ||
    (behind !== undefined && (/[a-zA-Z0-9]/.test(behind) || isForeign.test(behind)))
  )
}

/** Characters that may enclose an address: quotes, emphasis marks, and marks of code. */
const pairs: Readonly<Record<string, string>> = { "'": "'", "`": "`", "*": "*", _: "_", "~": "~", "|": "|", "{": "}" }

/**
 * Number of characters at the start that only enclose the address: the same ones follow it. Any other character belongs to the mailbox's name,
 * and without it the address would be another one.
 */
const wrapped = (input: string, from: number, at: number, to: number): number => {
  let count = 0
  while (from + count < at && pairs[input[from + count]!] === (input[to + count] ?? "")) count++
  return count
}

/**
 * E-mail addresses in the form of HTML, with a dot in the domain. It searches each `@` and reads at most 64 characters before it and a domain
 * after it, so each character is read a fixed number of times.
 */
export const emailsIn = (input: string): ReadonlyArray<Place> => {
  const places: Array<Place> = []
  let least = 0
  for (let at = input.indexOf("@"); at >= 0; at = input.indexOf("@", at + 1)) {
    let from = at
    while (from > least && at - from < 64 && isLocal.test(input[from - 1]!)) from--
    // An address does not begin with a dot, and a separator of a URL does not belong to it.
    while (from < at && /[./?&=#]/.test(input[from]!)) from++
    domain.lastIndex = at + 1
    const host = from < at && input[at - 1] !== "." ? domain.exec(input) : null
    if (host === null) continue
    const to = at + 1 + host[0].length
    if (goesOn(input, from, to)) continue
    from += wrapped(input, from, at, to)
    if (from === at) continue
    places.push({ text: input.slice(from, to), from, to })
    least = to
  }
  return places
}

/** Removes e-mail addresses, which would be found as URLs. */
const withoutEmails = (input: string): string => {
  let rest = ""
  let from = 0
  for (const place of emailsIn(input)) {
    // A URL may contain an `@` itself, in its credentials.
    const before = input.slice(Math.max(0, place.from - 12), place.from)
    if (/:\/\/[^\s]*$/.test(before)) continue
    rest += `${input.slice(from, place.from)} `
    from = place.to
  }
  return rest + input.slice(from)
}

/** Maximum characters without white space that are searched for URLs. */
export const maxStretch = 40_000

/** Characters that are searched without a pause, extended to the next white space, because a URL contains none. */
const piece = 4096

/** The URLs of a text as written, with or without a scheme; e-mail addresses are not included. */
export function* urlsIn(input: string, call: Call): Generator<void, ReadonlyArray<string>, void> {
  call.spend(input.length / 4)
  const text = withoutEmails(input)
  const urls: Array<string> = []
  const space = /\s/g
  for (let from = 0; from < text.length;) {
    yield
    space.lastIndex = from + piece
    const to = space.exec(text)?.index ?? text.length
    if (to - from > maxStretch)
      throw tooMuch("there are too many characters without white space", maxStretch, to - from, "input")
    call.spend((to - from) * 0.9)
    for (const { raw, schema } of linkify().match(text.slice(from, to)) ?? []) if (schema !== "mailto:") urls.push(raw)
    from = to
  }
  return urls
}
