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

/** Letters and numbers that no address of this form has, of scripts that put spaces between words: what they touch is another address. */
const isForeign = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{M}]/u

/** Whether a mailbox or a domain goes on where it was taken to begin or to end. */
const goesOn = (input: string, from: number, to: number): boolean => {
  const before = input[from - 1]
  const behind = input[to] === "." || input[to] === "-" ? input[to + 1] : input[to]
  return (
    (before !== undefined && (isLocal.test(before) || isForeign.test(before)) && !/[./?&=#]/.test(before)) ||
    (behind !== undefined && (/[a-zA-Z0-9]/.test(behind) || isForeign.test(behind)))
  )
}

/** What may stand on both sides of an address: quotes, emphasis, and what code and sums are written in. */
const pairs: Readonly<Record<string, string>> = { "'": "'", "`": "`", "*": "*", _: "_", "~": "~", "|": "|", "{": "}" }

/**
 * Characters before an address that are not its own: those that stand behind it, too. Any other is a part of the mailbox's name, and without it
 * the address would be another one.
 */
const wrapped = (input: string, from: number, at: number, to: number): number => {
  let count = 0
  while (from + count < at && pairs[input[from + count]!] === (input[to + count] ?? "")) count++
  return count
}

/**
 * E-mail addresses in the form that HTML takes, with a dot in the domain. It goes from `@` to `@` and looks at 64 characters before and a domain behind
 * it: nothing is looked at more than a fixed number of times.
 */
export const emailsIn = (input: string): ReadonlyArray<Place> => {
  const places: Array<Place> = []
  let least = 0
  for (let at = input.indexOf("@"); at >= 0; at = input.indexOf("@", at + 1)) {
    let from = at
    while (from > least && at - from < 64 && isLocal.test(input[from - 1]!)) from--
    // No address begins with a dot, and what ends a part of a URL is none of its own.
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

/** A text without its addresses of e-mail, which would be taken for URLs. */
const withoutEmails = (input: string): string => {
  let rest = ""
  let from = 0
  for (const place of emailsIn(input)) {
    // What a URL begins with may have an `@` of its own.
    const before = input.slice(Math.max(0, place.from - 12), place.from)
    if (/:\/\/[^\s]*$/.test(before)) continue
    rest += `${input.slice(from, place.from)} `
    from = place.to
  }
  return rest + input.slice(from)
}

/** Characters without white space among them that URLs are looked for in. */
export const maxStretch = 40_000

/** Characters that are looked at in one go, and some more: no URL goes beyond white space. */
const piece = 4096

/** URLs as they are written, with and without a scheme; addresses of e-mail are none. */
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
