import { parsingJson } from "@tidegate/json/JsonText"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { Parser } from "htmlparser2"
import { hash } from "node:crypto"
import type { Item } from "./Adapter.ts"
import { listOf, memberOf, textOf, timeOf } from "./Foreign.ts"
import { itemId, itemOf, maxItems } from "./Items.ts"

/**
 * Reads feeds: RSS 0.9x, 1.0 and 2.0, Atom 1.0, and JSON Feed. The XML parser knows no document types and no entities beside XML's own, so a feed can
 * neither expand nor read anything. Its cost is limited: it reads elements as they come, at most 1,000 entries and 100 levels.
 */

export interface Attachment {
  readonly url: string
  readonly type: string | null
  readonly length: string | null
}

export interface FeedEntry {
  /** The entry's own id, otherwise its link; null: it has neither. */
  readonly id: string | null
  readonly url: string | null
  readonly title: string | null
  readonly summary: string | null
  readonly content: string | null
  readonly author: string | null
  /** RFC 3339, or the feed's own text if that is no date. */
  readonly published_at: string | null
  readonly updated_at: string | null
  readonly categories: ReadonlyArray<string>
  readonly attachments: ReadonlyArray<Attachment>
}

export interface FeedDocument {
  readonly title: string | null
  readonly url: string | null
  /** The hub at which the feed can be subscribed to, and the address to subscribe to. Both may be relative URLs. */
  readonly hubs: ReadonlyArray<string>
  readonly self: string | null
  /** The first 1,000, in the feed's order. */
  readonly entries: ReadonlyArray<FeedEntry>
}

/** Parses a feed in steps. Null: the document is not a feed. */
export function* parsingFeed(bytes: Uint8Array, contentType: string | null): Resumable<FeedDocument | null> {
  const head = bytes.subarray(0, longestBlank)
  const start = head.findIndex((byte) => byte > 32 && byte !== 0xef && byte !== 0xbb && byte !== 0xbf)
  if (bytes[start] === 0x7b) {
    const parsed = yield* parsingJson(start === 0 ? bytes : bytes.subarray(start))
    return parsed.kind === "json" ? jsonFeed(parsed.value) : null
  }
  const decoder = decoderOf(bytes, contentType)
  const reader = new XmlFeed()
  const parser = new Parser(reader, { xmlMode: true, decodeEntities: true })
  try {
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      parser.write(decoder.decode(bytes.subarray(at, at + chunkBytes), { stream: true }))
      yield
    }
    parser.end(decoder.decode())
  } catch (error) {
    if (!(error instanceof Enough)) throw error
  }
  return reader.document
}

/** The item of an entry. Its id depends only on the entry, so it is the same in a notification and in the feed itself. */
export const entryItem = (feed: FeedDocument, entry: FeedEntry): Item =>
  itemOf(
    entryId(entry),
    { ...entry, feed: { title: feed.title, url: feed.url } },
    timeOf(entry.published_at) ?? timeOf(entry.updated_at)
  )

/** An entry without id and link is identified by its content. */
export const entryId = ({ content, id, summary, title }: FeedEntry): string =>
  itemId("entry", id ?? `sha256:${hash("sha256", JSON.stringify([title, summary, content]))}`)

/** Blank bytes before JSON: a search of ten megabytes of them would take longer than everything else. */
const longestBlank = 4_096

/** Characters that are parsed at a time: a few milliseconds. */
const chunkBytes = 65_536

const encodingIn = /^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]{1,40})["']/

/** The encoding of the content type, then of the document itself; UTF-8 if neither names a known one. */
const decoderOf = (bytes: Uint8Array, contentType: string | null): TextDecoder => {
  const head = Buffer.from(bytes.subarray(0, 1_024))
  if (head[0] === 0xff && head[1] === 0xfe) return new TextDecoder("utf-16le")
  if (head[0] === 0xfe && head[1] === 0xff) return new TextDecoder("utf-16be")
  const labels = [
    /\bcharset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType ?? "")?.[1],
    encodingIn.exec(head.toString("latin1").replace(/^\u00ef\u00bb\u00bf/, ""))?.[1]
  ]
  for (const label of labels) {
    try {
      if (label !== undefined) return new TextDecoder(label)
    } catch {
      // An unknown encoding: the next one is tried.
    }
  }
  return new TextDecoder("utf-8")
}

const dated = (text: string | null): string | null => {
  const at = timeOf(text)
  return at === null ? text : new Date(at).toISOString()
}

const jsonFeed = (feed: unknown): FeedDocument | null => {
  const version = textOf(feed, "version")
  if (version === null || !/jsonfeed\.org\/version\//.test(version)) return null
  return {
    title: textOf(feed, "title"),
    url: textOf(feed, "home_page_url"),
    hubs: listOf(feed, "hubs").flatMap((hub) => textOf(hub, "url") ?? []),
    self: textOf(feed, "feed_url"),
    entries: listOf(feed, "items")
      .slice(0, maxItems)
      .map((item) => ({
        id: textOf(item, "id") ?? textOf(item, "url"),
        url: textOf(item, "url") ?? textOf(item, "external_url"),
        title: textOf(item, "title"),
        summary: textOf(item, "summary"),
        content: textOf(item, "content_html") ?? textOf(item, "content_text"),
        author: textOf(listOf(item, "authors")[0], "name") ?? textOf(memberOf(item, "author"), "name"),
        published_at: dated(textOf(item, "date_published")),
        updated_at: dated(textOf(item, "date_modified")),
        categories: listOf(item, "tags").filter((tag) => typeof tag === "string"),
        attachments: listOf(item, "attachments").flatMap((one): ReadonlyArray<Attachment> => {
          const url = textOf(one, "url")
          return url === null ? [] : [{ url, type: textOf(one, "mime_type"), length: textOf(one, "size_in_bytes") }]
        })
      }))
  }
}

/** Thrown to stop the parser: everything needed has been read, or the document is not a feed. */
class Enough extends Error {}

/** The namespaces whose elements a feed may use, with the prefixes that the reader gives them. */
const prefixes: Readonly<Record<string, string>> = {
  "http://www.w3.org/2005/Atom": "atom:",
  "http://purl.org/rss/1.0/modules/content/": "content:",
  "http://purl.org/dc/elements/1.1/": "dc:",
  "http://purl.org/rss/1.0/": "",
  "http://my.netscape.com/rdf/simple/0.9/": ""
}

const deepest = 100

/** A text of an element that is being read. Markup inside of it is kept as markup. */
interface Reading {
  readonly depth: number
  readonly parts: Array<string>
  /** Whether its markup is part of the text as it stands (`xhtml`), so that its text is escaped. */
  isMarkup: boolean
  /** Whether a start tag is still open. */
  isOpen: boolean
}

type Draft = { -readonly [Name in keyof FeedEntry]: FeedEntry[Name] } & {
  guid: string | null
  readonly categories: Array<string>
  readonly attachments: Array<Attachment>
}

const drafted = (): Draft => ({
  id: null,
  guid: null,
  url: null,
  title: null,
  summary: null,
  content: null,
  author: null,
  published_at: null,
  updated_at: null,
  categories: [],
  attachments: []
})

const maxListed = 100

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }
const escape = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => escapes[sign]!)

/** The handler of the parser. It keeps the path of open elements, and at most one text. */
class XmlFeed {
  #root: "rss" | "atom" | null = null
  readonly #path: Array<string> = []
  readonly #prefixes = new Map<string, string>()
  #attributes: Record<string, string> = {}
  #isStarting = false
  #reading: Reading | null = null
  #draft: Draft | null = null
  #draftDepth = 0
  #title: string | null = null
  #url: string | null = null
  #self: string | null = null
  readonly #hubs: Array<string> = []
  readonly #entries: Array<FeedEntry> = []

  get document(): FeedDocument | null {
    return this.#root === null
      ? null
      : { title: this.#title, url: this.#url, hubs: this.#hubs, self: this.#self, entries: this.#entries }
  }

  onopentagname(name: string): void {
    this.#started()
    if (this.#root === null && this.#path.length === 0) this.#begin(name)
    if (this.#path.length >= deepest) throw new Enough()
    this.#path.push(name)
    this.#attributes = {}
    this.#isStarting = true
    if (this.#reading !== null) {
      this.#closeTag()
      this.#reading.parts.push(`<${name}`)
      this.#reading.isOpen = true
    }
  }

  onattribute(name: string, value: string): void {
    if (name.startsWith("xmlns:")) {
      const prefix = prefixes[value]
      if (prefix !== undefined && this.#prefixes.size < maxListed) this.#prefixes.set(name.slice(6), prefix)
    }
    if (this.#reading !== null) this.#reading.parts.push(` ${name}="${escape(value)}"`)
    else if (/^(?:rel|href|type|length|url|term)$/.test(name)) this.#attributes[name] = value
  }

  ontext(text: string): void {
    this.#started()
    if (this.#reading === null) return
    this.#closeTag()
    this.#reading.parts.push(this.#reading.isMarkup ? escape(text) : text)
  }

  onclosetag(): void {
    this.#started()
    const depth = this.#path.length
    const name = this.#path.pop()!
    const reading = this.#reading
    if (reading !== null) {
      if (depth > reading.depth) {
        this.#closeTag()
        reading.parts.push(`</${name}>`)
      } else {
        this.#reading = null
        this.#set(this.#named(name), reading.parts.join("").trim())
      }
    }
    if (this.#draft !== null && depth === this.#draftDepth) {
      const { guid, ...entry } = this.#draft
      this.#entries.push({ ...entry, id: entry.id ?? guid ?? entry.url })
      this.#draft = null
      if (this.#entries.length === maxItems) throw new Enough()
    }
  }

  #begin(name: string): void {
    const local = name.slice(name.indexOf(":") + 1)
    this.#root = local === "rss" || local === "RDF" ? "rss" : local === "feed" ? "atom" : null
    if (this.#root === null) throw new Enough()
  }

  /** The name without the prefix that the document uses: elements of the feed's own language have none. */
  #named(name: string): string {
    const colon = name.indexOf(":")
    if (colon < 0) return name
    const prefix = this.#prefixes.get(name.slice(0, colon)) ?? `${name.slice(0, colon)}:`
    return (this.#root === "atom" && prefix === "atom:" ? "" : prefix) + name.slice(colon + 1)
  }

  #closeTag(): void {
    if (this.#reading?.isOpen !== true) return
    this.#reading.parts.push(">")
    this.#reading.isOpen = false
  }

  /** The attributes of the newest element are complete. */
  #started(): void {
    if (!this.#isStarting) return
    this.#isStarting = false
    if (this.#reading !== null) return
    const depth = this.#path.length
    const name = this.#named(this.#path[depth - 1]!)
    if (this.#draft === null && (name === "item" || name === "entry") && depth > 1) {
      this.#draft = drafted()
      this.#draftDepth = depth
      return
    }
    const inEntry = this.#draft !== null
    const level = inEntry ? this.#draftDepth : this.#root === "atom" ? 1 : 2
    const isAuthor = depth === level + 2 && name === "name" && this.#named(this.#path[depth - 2]!) === "author"
    if (depth !== level + 1 && !isAuthor) return
    this.#attended(name, this.#attributes)
    // An RSS author is a text, an Atom author has a name inside.
    const isText = isAuthor || (inEntry && name === "author" && this.#root === "rss")
    if (isText || (inEntry ? ofEntries : ofFeeds).has(name)) {
      this.#reading = { depth, parts: [], isMarkup: this.#attributes["type"] === "xhtml", isOpen: false }
    }
  }

  /** What an element says by its attributes. */
  #attended(name: string, attributes: Readonly<Record<string, string>>): void {
    const { href, length = null, rel = "alternate", term, type = null, url } = attributes
    if ((name === "link" || name === "atom:link") && href !== undefined) this.#link(rel, { href, type, length })
    if (this.#draft === null) return
    if (name === "category" && term !== undefined) this.#list(this.#draft.categories, term)
    if (name === "enclosure" && url !== undefined) this.#list(this.#draft.attachments, { url, type, length })
  }

  #link(rel: string, { href, length, type }: { href: string; type: string | null; length: string | null }): void {
    if (this.#draft !== null) {
      if (rel === "alternate") this.#draft.url ??= href
      if (rel === "enclosure") this.#list(this.#draft.attachments, { url: href, type, length })
      return
    }
    if (rel === "alternate") this.#url ??= href
    if (rel === "self") this.#self ??= href
    if (rel === "hub") this.#list(this.#hubs, href)
  }

  #list<A>(list: Array<A>, one: A): void {
    if (list.length < maxListed) list.push(one)
  }

  /** The text of an element. The first one of a name counts. */
  #set(name: string, text: string): void {
    if (text === "") return
    const draft = this.#draft
    if (draft === null) {
      if (name === "title") this.#title ??= text
      if (name === "link") this.#url ??= text
      return
    }
    switch (name) {
      case "id":
        draft.id ??= text
        break
      case "guid":
        draft.guid ??= text
        break
      case "title":
        draft.title ??= text
        break
      case "link":
        draft.url ??= text
        break
      case "summary":
      case "description":
        draft.summary ??= text
        break
      case "content":
      case "content:encoded":
        draft.content ??= text
        break
      case "author":
      case "name":
      case "dc:creator":
        draft.author ??= text
        break
      case "published":
      case "pubDate":
      case "dc:date":
        draft.published_at ??= dated(text)
        break
      case "updated":
        draft.updated_at ??= dated(text)
        break
      case "category":
        this.#list(draft.categories, text)
    }
  }
}

const ofFeeds = new Set(["title", "link"])

/** The elements of an entry whose text is read. */
const ofEntries = new Set([
  "id",
  "guid",
  "title",
  "link",
  "summary",
  "description",
  "content",
  "content:encoded",
  "dc:creator",
  "published",
  "pubDate",
  "dc:date",
  "updated",
  "category"
])
