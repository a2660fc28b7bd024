import { unescape } from "node:querystring"
import type { IsSecretName } from "./SecretNames.ts"

/**
 * Masks named secrets in text that is not valid JSON: `password=x`, `Cookie: x`, `"token":"x"` with its quotes escaped or not,
 * `<secret>x</secret>`. The end of a value is estimated, rather too late than too early. Each character is read only a few times.
 */
export function* namedSecretsRemoved(
  text: string,
  isSecret: IsSecretName,
  mask: string
): Generator<void, string, void> {
  let kept = ""
  let keptTo = 0
  /** The name is itself a value: `name: "password", value: "x"`. */
  let isNamed = false
  const separators = /=>|[:=<]/g
  let seen = 0
  for (let found = separators.exec(text); found !== null; found = separators.exec(text)) {
    if (++seen % inOnePart === 0) yield
    const end = separators.lastIndex
    if (found[0] === "<") {
      const element = elementAt(text, end)
      if (element === null || !isSecret(element.name)) continue
      const closing = text.indexOf(`</${element.name}`, element.from)
      kept += text.slice(keptTo, element.from) + mask
      keptTo = closing < 0 ? text.length : closing
    } else {
      const name = nameBefore(text, found.index, keptTo)
      if (name === "") continue
      const from = skip(text, end, blank)
      const isValue = isNamed && valueNames.test(name)
      if (isSecret(name) || isValue) {
        const to = valueEnd(text, from, found[0] === "=")
        if (to === from || nothing.test(text.slice(from, to))) continue
        kept += text.slice(keptTo, from) + maskedLike(text, from, mask)
        keptTo = to
        isNamed = false
      } else if (nameNames.test(name)) {
        isNamed = isSecret(word.exec(text.slice(from, from + longestName))![1]!)
        continue
      } else continue
    }
    separators.lastIndex = keptTo
  }
  return kept + text.slice(keptTo)
}

/** Separators that are checked between two yields. */
const inOnePart = 256
const blank = /\s/
const nothing = /^\\*["'`]?(?:null|true|false|undefined|none|nil)?\\*["'`]?$/i

/** Member names that introduce a name or a value in a list of pairs. */
export const nameNames = /^(?:name|key|field|header|label|param(?:eter)?)$/i
export const valueNames = /^(?:value|val|content|data|text|string)$/i

const skip = (text: string, from: number, what: RegExp): number => {
  let at = from
  while (at < text.length && what.test(text.charAt(at))) at++
  return at
}

const longestName = 128
const word = /^[\\"'`]*([^\s\\"'`,;&<>{}[\]]*)/
const inName = /[^\s"'`{,;&<>?()|=:]/

/** The name that ends before a separator, without quotes and escapes. Text before `least` is not read. */
const nameBefore = (text: string, separator: number, least: number): string => {
  let end = separator
  while (end > least && separator - end < 16 && /[\s"'`\\\])]/.test(text.charAt(end - 1))) end--
  let start = end
  while (start > least && end - start < longestName && inName.test(text.charAt(start - 1))) start--
  const written = text.slice(start, end).replace(/^[\\[]+/, "")
  const plain = written.includes("\\")
    ? written.replaceAll(/\\+u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : written
  return plain.includes("%") ? unescape(plain) : plain
}

/** The mask, in the same quotes as the value. */
const maskedLike = (text: string, from: number, mask: string): string => {
  const quote = /^\\*["'`]/.exec(text.slice(from, from + 16))?.[0] ?? ""
  return quote + mask + quote
}

/** The end of the value that begins here. */
const valueEnd = (text: string, from: number, inLine: boolean): number => {
  const quote = /^(\\*)(["'`])/.exec(text.slice(from, from + 16))
  if (quote !== null) return quotedEnd(text, from + quote[0].length, quote[2]!, quote[1]!.length)
  const first = text.charAt(from)
  if (first === "{" || first === "[") return bracketedEnd(text, from)
  // An authentication scheme belongs to the value after it.
  const scheme =
    /^(?:bearer|basic|token|digest|negotiate|hmac)[ \t]+/i.exec(text.slice(from, from + 32))?.[0].length ?? 0
  const stop = inLine ? /[\s&;,"'<>]/g : /[\r\n<]/g
  stop.lastIndex = from + scheme
  // The length of a YAML block depends on its indentation: everything to the end of the text is masked.
  if (/^[|>][+-]?[ \t]*\r?\n/.test(text.slice(from, from + 16))) return text.length
  return stop.exec(text)?.index ?? text.length
}

const quotedEnd = (text: string, from: number, quote: string, escapes: number): number => {
  for (let at = text.indexOf(quote, from); at >= 0; at = text.indexOf(quote, at + 1)) {
    let before = at
    while (before > from && text.charAt(before - 1) === "\\") before--
    const escaped = at - before
    if (escaped <= escapes || (escapes === 0 && escaped % 2 === 0)) return at + 1
  }
  return text.length
}

const bracketedEnd = (text: string, from: number): number => {
  let depth = 0
  let isQuoted = false
  for (let at = from; at < text.length; at++) {
    const one = text.charAt(at)
    if (one === "\\") at++
    else if (one === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (one === "{" || one === "[") depth++
    else if ((one === "}" || one === "]") && --depth === 0) return at + 1
  }
  return text.length
}

/** The name of the XML element that begins here, and the index of its content. */
const elementAt = (text: string, at: number) => {
  const tag = /^([\w:.-]{1,128})(?:\s[^<>]{0,2000})?>/.exec(text.slice(at, at + 2200))
  if (tag === null || tag[0].endsWith("/>")) return null
  return { name: tag[1]!, from: at + tag[0].length }
}
