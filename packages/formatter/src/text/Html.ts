import { Fault, tooMuch } from "../engine/Fault.ts"
import { htmlparser } from "../engine/Libraries.ts"

export const maxNesting = 100

/** Elements whose text is not shown. */
const silent = new Set(["script", "style", "head", "template", "noscript", "iframe", "object", "textarea", "title"])

interface Listener {
  readonly text: (text: string) => void
  readonly open: (name: string, attributes: Readonly<Record<string, string>>) => void
  readonly close: (name: string) => void
}

/** Characters that are read between two yields. */
const part = 16_384

/**
 * Reads HTML, even invalid HTML, without invisible content. Resumable. Every opened element is closed, and elements are nested at most 100 levels
 * deep. `micros`: cost of each character.
 */
export function* readHtml(
  html: string,
  { close, open, text }: Listener,
  spend: (micros: number) => void,
  micros: number
): Generator<void, void, void> {
  let depth = 0
  let quiet = 0
  /** The element whose start tag is not over. Where the HTML ends in one, the parser closes what it has not opened. */
  let begun: string | null = null
  const parser = new (htmlparser().Parser)(
    {
      ontext: (piece) => {
        if (quiet === 0) text(piece)
      },
      onopentagname: (name) => {
        begun = name
      },
      onopentag: (name, attributes) => {
        begun = null
        if (++depth > maxNesting) throw tooMuch("elements are nested too deep", maxNesting, depth, "input")
        if (silent.has(name)) quiet++
        if (quiet === 0) open(name, attributes)
      },
      onclosetag: (name) => {
        if (name === begun) {
          begun = null
          return
        }
        depth--
        if (quiet === 0) close(name)
        if (silent.has(name)) quiet--
      }
    },
    { decodeEntities: true }
  )
  try {
    for (let at = 0; at < html.length; at += part) {
      if (at > 0) yield
      const some = html.slice(at, at + part)
      spend(some.length * micros)
      parser.write(some)
    }
    parser.end()
  } catch (cause) {
    throw cause instanceof Fault
      ? cause
      : new Fault("FORMATTER_INPUT_INVALID", "the HTML cannot be read", { field: "input" })
  }
}

export const safeScheme = (address: string): boolean => {
  // Browsers ignore control characters and white space in a scheme.
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address.replaceAll(/[\p{Cc}\s]/gu, ""))?.[1]?.toLowerCase()
  return scheme === undefined || ["http", "https", "mailto", "tel", "ftp", "sms"].includes(scheme)
}

export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
